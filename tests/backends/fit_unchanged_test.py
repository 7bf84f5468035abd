"""A budget with room for everything changes nothing. Run by tests/backends/test_each_backend.py."""

import random
from collections import deque

import keras
import numpy as np
import pytest
from keras import layers, ops

import memfit
from conftest import compile_options
from memfit.errors import BudgetError, UsageError
from memfit.fitting.state.saved_attributes import attributes_kept
from memfit.fitting.state.saved_state import Snapshot
from memfit.measure.peak import read_tree_bytes

BACKEND = keras.backend.backend()
AMPLE = "900GB"
X = np.random.default_rng(0).standard_normal((24, 6)).astype("float32")
Y = X[:, :1] * 2
W = np.linspace(0.5, 2, 24).astype("float32")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def make(**compiled):
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.Input((6,)),
            layers.Dense(5, "relu"),
            layers.Dropout(0.3),
            layers.Dense(1),
        ]
    )
    model.compile("adam", "mse", metrics=["mae"], **compile_options(**compiled))
    return model


def unbuilt():
    """What draws from Keras's shared seed, and is built by its first batch."""

    class Noisy(layers.Layer):
        def __init__(self):
            super().__init__()
            # Without a seed Keras's shared one is used, which JAX does not allow in a step.
            self.seeds = keras.random.SeedGenerator(1) if BACKEND == "jax" else None

        def call(self, x):
            return x + keras.random.normal(ops.shape(x), seed=self.seeds)

    keras.utils.set_random_seed(3)
    model = keras.Sequential([Noisy(), layers.Dense(4, "relu"), layers.Dense(1)])
    model.compile("adam", "mse", metrics=["mae"], **compile_options())
    return model


class Rows(keras.utils.PyDataset):
    """Draws random numbers for each batch, so that one too many shows."""

    def __len__(self):
        return 3

    def __getitem__(self, index):
        rows = slice(8 * index, 8 * index + 8)
        return X[rows] + random.random() + np.random.random(), Y[rows]


def generate():
    for index in range(9):
        rows = slice(8 * (index % 3), 8 * (index % 3) + 8)
        yield X[rows] + np.random.standard_normal((8, 6)), Y[rows], W[rows]


def tf_data():
    tf = pytest.importorskip("tensorflow")
    rows = tf.data.Dataset.from_tensor_slices((X, Y))
    return rows.shuffle(24).batch(8)  # by the seed of set_random_seed


def loader():
    torch = pytest.importorskip("torch")
    torch.manual_seed(5)
    rows = torch.utils.data.TensorDataset(torch.tensor(X), torch.tensor(Y))
    return torch.utils.data.DataLoader(rows, batch_size=8, shuffle=True)


FED = {
    "arrays": lambda: {"x": X, "y": Y, "sample_weight": W, "batch_size": 10},
    "all at once": lambda: {"x": X, "y": Y, "batch_size": 24},
    "class weights": lambda: {
        "x": X,
        "y": (Y > 0) * 1,
        "class_weight": {0: 1.0, 1: 2.0},
        "batch_size": 8,
    },
    "PyDataset": lambda: {"x": Rows()},
    "generator": lambda: {"x": generate(), "steps_per_epoch": 3},
    "tf.data": lambda: {"x": tf_data()},
    "DataLoader": lambda: {"x": loader()},
    "validation": lambda: {"x": X, "y": Y, "batch_size": 8, "validation_data": (X, Y)},
    "validation split": lambda: {"x": X, "y": Y, "batch_size": 8, "validation_split": 0.3},
    "from an epoch on": lambda: {"x": X, "y": Y, "batch_size": 8, "initial_epoch": 1},
    "a last batch of one row": lambda: {"x": X, "y": Y, "batch_size": 23},
}


def train(make_model, fed, fit, epochs=2):
    """What a training leaves: its losses, the weights, and where random numbers are."""
    model = make_model()
    history = fit(model, **fed(), epochs=epochs, verbose=0)
    return history.history, model.get_weights(), random.random(), np.random.random()


def plainly(model, **arguments):
    return model.fit(**arguments)


def within(model, **arguments):
    return memfit.fit(model, **arguments, budget=AMPLE)


def assert_equal(one, other):
    keras.tree.map_structure(np.testing.assert_array_equal, one, other)


@pytest.mark.parametrize("kind", FED)
def test_every_loss_weight_and_random_number_is_that_of_the_plain_run(kind):
    plain = train(make, FED[kind], plainly)

    assert_equal(train(make, FED[kind], within), plain)


def test_a_model_that_its_first_batch_builds_draws_no_other_numbers():
    plain = train(unbuilt, FED["arrays"], plainly)

    assert_equal(train(unbuilt, FED["arrays"], within), plain)


@pytest.mark.parametrize(
    "compiled", [{"run_eagerly": True}, {"steps_per_execution": 2}, {"run_eagerly": False}]
)
def test_steps_that_are_compiled_run_eagerly_or_several_at_once_are_the_same(compiled):
    if BACKEND == "torch" and "steps_per_execution" in compiled:
        pytest.skip("Keras on torch runs one step at a time")
    plain = train(lambda: make(**compiled), FED["arrays"], plainly)

    assert_equal(train(lambda: make(**compiled), FED["arrays"], within), plain)


def minimize(optimizer, loss, layer, x):
    """One update of a layer, in the way of each framework."""
    weights = layer.trainable_variables
    if BACKEND == "torch":
        layer.zero_grad()
        loss(layer(x)).backward()
        gradients = [weight.value.grad for weight in weights]
        import torch

        with torch.no_grad():
            optimizer.apply(gradients, weights)
    else:
        import tensorflow as tf

        with tf.GradientTape() as tape:
            value = loss(layer(x))
        optimizer.apply(tape.gradient(value, [one.value for one in weights]), weights)


class Adversarial(keras.Model):
    """No `call`, two optimizers of its own, one in a dictionary, and a metric in a list."""

    def __init__(self):
        super().__init__()
        self.generator = keras.Sequential([keras.Input((2,)), layers.Dense(6)])
        self.critic = keras.Sequential([keras.Input((6,)), layers.Dropout(0.2), layers.Dense(1)])
        self.tracked = [keras.metrics.Mean(name="loss")]
        self.seeds = keras.random.SeedGenerator(1)
        self.built = True

    def compile(self):
        super().compile(**compile_options())
        self.d_optimizer = keras.optimizers.Adam(0.01)
        self.others = {"generator": keras.optimizers.Adam(0.01)}

    @property
    def metrics(self):
        return self.tracked

    def train_step(self, data):
        x = data[0] if isinstance(data, tuple) else data
        noise = keras.random.normal((ops.shape(x)[0], 2), seed=self.seeds)
        fake = self.generator(noise)
        minimize(
            self.d_optimizer,
            lambda seen: ops.mean(seen) - ops.mean(self.critic(x, training=True)),
            self.critic,
            ops.stop_gradient(fake),
        )
        minimize(
            self.others["generator"],
            lambda made: -ops.mean(self.critic(made, training=True)),
            self.generator,
            noise,
        )
        self.tracked[0].update_state(ops.mean(fake))
        return {"loss": self.tracked[0].result()}


def adversarial():
    keras.utils.set_random_seed(3)
    model = Adversarial()
    model.compile()
    return model


without_jax = pytest.mark.skipif(BACKEND == "jax", reason="JAX has no steps with side effects")


@without_jax
@pytest.mark.parametrize("kind", ["array", "DataLoader", "tf.data"])
def test_a_model_with_optimizers_of_its_own_and_no_call_trains_as_without_a_budget(kind, capsys):
    def fed():
        if kind == "array":
            return {"x": X, "batch_size": 8}
        if kind == "tf.data":
            tf = pytest.importorskip("tensorflow")
            return {"x": tf.data.Dataset.from_tensor_slices(X).batch(8)}
        torch = pytest.importorskip("torch")
        return {"x": torch.utils.data.DataLoader(torch.tensor(X), batch_size=8)}

    if kind == "DataLoader" and BACKEND == "tensorflow":
        pytest.skip("Keras's own step takes a tuple there")
    plain = train(adversarial, fed, plainly)

    assert_equal(train(adversarial, fed, within), plain)
    model = adversarial()
    within(model, **fed())
    assert "stay whole" in capsys.readouterr().err
    assert int(model.d_optimizer.iterations) == 3


@without_jax
def test_a_model_whose_steps_cannot_be_cut_is_refused_if_whole_batches_do_not_fit():
    x = np.zeros((2**20, 6), "float32")
    model = adversarial()
    before = [np.array(one) for one in model.get_weights()]

    with pytest.raises(BudgetError, match="nothing was trained"):
        memfit.fit(model, x, batch_size=2**20, verbose=0, budget=f"{read_tree_bytes() + 10**7}B")

    assert_equal(model.get_weights(), before)
    assert int(model.d_optimizer.iterations) == 0


class Counting(keras.Model):
    """Counts and notes in every way that Python has, and draws from generators of its own."""

    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(1)
        self.steps = 0
        self.seen = []
        self.by_name = {"steps": 0}
        self.last = deque(maxlen=2)
        self.totals = np.zeros(2)
        self.draws = np.random.default_rng(7)
        self.python_draws = random.Random(7)
        self.helper = Helper()

    def call(self, x):
        return self.dense(x)

    def train_step(self, *args):
        self.steps += 1
        self.seen.append(self.draws.random())
        self.by_name["steps"] += 1
        self.last.append(self.python_draws.random())
        self.totals += 1
        self.helper.count += 1
        self.helper.inner[0].append(self.steps)
        return super().train_step(*args)

    @property
    def counted(self):
        raise AssertionError("no property of the user's is run")

    @property
    def noted(self):
        return (
            self.steps,
            list(self.seen),
            dict(self.by_name),
            list(self.last),
            self.totals.tolist(),
            self.draws.random(),
            self.python_draws.random(),
            self.helper.count,
            list(self.helper.inner[0]),
        )


class Helper:
    __slots__ = ("count", "inner")

    def __init__(self):
        self.count = 0
        self.inner = ([],)


def counting():
    keras.utils.set_random_seed(3)
    model = Counting()
    model.compile("adam", "mse", run_eagerly=BACKEND != "jax")
    return model


def test_what_a_step_counts_in_plain_python_is_counted_once():
    plain = counting()
    plain.fit(X, Y, batch_size=8, epochs=2, verbose=0)
    model = counting()
    memfit.fit(model, X, Y, batch_size=8, epochs=2, verbose=0, budget=AMPLE)

    assert model.noted == plain.noted
    assert_equal(model.get_weights(), plain.get_weights())


class TorchState:
    """A tensor and a module that Keras does not know."""

    def __init__(self):
        import torch

        self.steps = {"number": torch.zeros(2, dtype=torch.bfloat16)}
        self.module = torch.nn.BatchNorm1d(6)

    def change(self):
        import torch

        self.steps["number"].add_(1)
        self.module(torch.tensor(X))

    def read(self):
        return self.steps["number"].tolist(), self.module.running_mean.tolist()


class TensorFlowState:
    """A variable and a generator that Keras does not know."""

    def __init__(self):
        import tensorflow as tf

        self.steps = {"number": tf.Variable(0)}
        self.draws = tf.random.Generator.from_seed(1)

    def change(self):
        self.steps["number"].assign_add(1)
        self.draws.normal([2])

    def read(self):
        return int(self.steps["number"]), self.draws.state.numpy().tolist()


@pytest.mark.skipif(BACKEND == "jax", reason="JAX has no variables of its own")
def test_variables_that_keras_does_not_know_are_put_back():
    model = make()
    model.own = own = TorchState() if BACKEND == "torch" else TensorFlowState()
    before = own.read()

    with Snapshot(model):
        own.change()
        assert own.read() != before

    assert own.read() == before


def test_attributes_that_are_made_changed_or_deleted_are_as_before():
    model = make()
    model.note, model.kept, model.names = 1, [1, [2]], {"a": 1, "b": 2}

    with attributes_kept(model):
        del model.note
        model.new = 3
        model.kept.append(4)
        model.kept[1].append(5)
        del model.names["a"]
        model.names["a"] = 7

    assert (model.note, model.kept) == (1, [1, [2]])
    assert list(model.names.items()) == [("a", 1), ("b", 2)]
    assert not hasattr(model, "new")


@pytest.mark.skipif(BACKEND != "tensorflow", reason="random operations of TensorFlow")
@pytest.mark.parametrize("is_eager", [False, True])
def test_numbers_that_tensorflow_draws_by_itself_are_the_same(is_eager):
    import tensorflow as tf

    class Noisy(layers.Layer):
        def call(self, x):
            return x + tf.random.normal(tf.shape(x))

    def noisy():
        keras.utils.set_random_seed(3)
        model = keras.Sequential([keras.Input((6,)), Noisy(), layers.Dense(1)])
        model.compile("adam", "mse", run_eagerly=is_eager)
        return model

    plain = train(noisy, FED["arrays"], plainly)

    assert_equal(train(noisy, FED["arrays"], within), plain)


@pytest.mark.skipif(BACKEND != "torch", reason="random operations of torch")
def test_numbers_that_torch_draws_by_itself_are_the_same():
    import torch

    class Noisy(layers.Layer):
        def __init__(self):
            super().__init__()
            self.draws = torch.Generator().manual_seed(5)

        def call(self, x):
            return x + torch.randn_like(x) + torch.randn(6, generator=self.draws)

    def noisy():
        keras.utils.set_random_seed(3)
        model = keras.Sequential([keras.Input((6,)), Noisy(), layers.Dense(1)])
        model.compile("adam", "mse")
        return model

    plain = train(noisy, FED["arrays"], plainly)

    assert_equal(train(noisy, FED["arrays"], within), plain)


def test_missing_numbers_in_the_data_are_trained_on_as_without_a_budget():
    x = X.copy()
    x[3] = np.nan
    plain = train(make, lambda: {"x": x, "y": Y, "batch_size": 8}, plainly)

    assert_equal(train(make, lambda: {"x": x, "y": Y, "batch_size": 8}, within), plain)


@pytest.mark.parametrize("y", [Y[:0], Y[:5]], ids=["empty", "shorter"])
def test_data_that_makes_no_batches_ends_as_without_a_budget(y):
    x = X[:0] if len(y) == 0 else X

    def find_error(fit):
        try:
            fit(make(), x=x, y=y, batch_size=8, verbose=0)
        except Exception as error:
            return type(error)

    assert find_error(within) is find_error(plainly)


def test_an_error_of_the_model_is_raised_as_without_a_budget():
    class Broken(keras.Model):
        def train_step(self, *args):
            raise KeyError("of the user's")

    inputs = keras.Input((6,))
    model = Broken(inputs, layers.Dense(1)(inputs))
    model.compile("sgd", "mse")

    with pytest.raises(KeyError, match="of the user's"):
        memfit.fit(model, X, Y, batch_size=8, verbose=0, budget=AMPLE)


def test_a_model_that_takes_no_smaller_batch_is_trained_on_whole_ones(capsys):
    class Whole(keras.Model):
        def train_step(self, *args):
            if keras.tree.flatten(args[-1])[0].shape[0] not in (None, 8):
                raise ValueError("eight rows")
            return super().train_step(*args)

    def whole():
        keras.utils.set_random_seed(3)
        inputs = keras.Input((6,))
        model = Whole(inputs, layers.Dense(1)(inputs))
        model.compile("sgd", "mse", run_eagerly=BACKEND == "tensorflow")
        return model

    plain = train(whole, lambda: {"x": X, "y": Y, "batch_size": 8}, plainly)

    assert_equal(train(whole, lambda: {"x": X, "y": Y, "batch_size": 8}, within), plain)


def test_a_fit_of_the_users_own_is_run_once():
    class Own(keras.Model):
        calls = 0

        def fit(self, *args, **kwargs):
            Own.calls += 1
            return super().fit(*args, **kwargs)

    inputs = keras.Input((6,))
    model = Own(inputs, layers.Dense(1)(inputs))
    model.compile("sgd", "mse")

    memfit.fit(model, X, Y, batch_size=8, verbose=0, budget=AMPLE)

    assert Own.calls == 1
    assert model.optimizer.iterations == 3


def test_a_model_that_makes_its_own_function_is_refused_before_anything_runs():
    class Own(keras.Model):
        def make_train_function(self, force=False):
            return super().make_train_function(force)

    inputs = keras.Input((6,))
    model = Own(inputs, layers.Dense(1)(inputs))
    model.compile("sgd", "mse")

    with pytest.raises(UsageError, match="Own has a make_train_function of its own"):
        memfit.fit(model, X, Y, batch_size=8, verbose=0, budget=AMPLE)
