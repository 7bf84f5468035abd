"""Levers at the first batch of a user's data. Run by tests/backends/test_each_backend.py.

What would be another training is refused before its first update, with the culprit named and
nothing changed; what is the same training goes on with that very batch.
"""

import copy
import pickle
import random
import subprocess
import sys

import keras
import numpy as np
import pytest
from keras import layers, ops

from conftest import compile_options
from memfit.backends import load
from memfit.errors import UsageError
from memfit.fitting.levers.guard import guard
from memfit.fitting.levers.micro_batches import split
from memfit.fitting.levers.recompute import recompute
from memfit.fitting.proof import gate

BACKEND = keras.backend.backend()
RNG = np.random.default_rng(0)
X = RNG.standard_normal((24, 6)).astype("float32")
Y = np.abs(X[:, :2]) / 4
LEVERS = {"split": lambda model: split(model, 5), "guard": lambda model: guard(model, size=5)}


class Centred(layers.Layer):
    """Looks at the whole batch."""

    def call(self, x):
        return x - ops.mean(x, axis=0)


class Summed(layers.Layer):
    """Adds a loss that is a sum over samples."""

    def call(self, x):
        self.add_loss(0.1 * ops.sum(ops.square(x)))
        return x


class Counting(layers.Layer):
    """Counts its calls in training."""

    def build(self, shape):
        self.calls = self.add_weight(shape=(), initializer="zeros", trainable=False, name="calls")

    def call(self, x, training=False):
        if training:
            self.calls.assign(self.calls + 1.0)
        return x


class Averaged(keras.regularizers.Regularizer):
    """Looks at a statistic of the batch."""

    def __call__(self, x):
        return ops.sum(ops.square(ops.mean(x, axis=0)))


class Widest(keras.metrics.Metric):
    """Averages over batches the largest mean of an output."""

    def __init__(self, **options):
        super().__init__(**options)
        self.total = self.add_variable((), "zeros", name="total")
        self.number = self.add_variable((), "zeros", name="number")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.total.assign_add(ops.max(ops.mean(y_pred, axis=0)))
        self.number.assign_add(1.0)

    def result(self):
        return self.total / self.number


def random_layer():
    """A layer that draws where Keras knows nothing of it."""
    if BACKEND == "torch":
        import torch

        def draw(x):
            return torch.randint(0, 2, tuple(x.shape), device=x.device).to(x.dtype)
    else:
        import tensorflow as tf

        def draw(x):
            return tf.random.gamma(tf.shape(x), 1.0)

    class Noisy(layers.Layer):
        def call(self, x, training=False):
            return x + draw(x) if training else x

    return Noisy(name="noisy")


def build(*more, loss="mse", activation="tanh", **options):
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.Input((6,)),
            layers.Dense(8, activation),
            *(make() for make in more),
            layers.Dropout(0.3),
            layers.Dense(2, "sigmoid"),
        ]
    )
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    model.compile(optimizer, loss, **compile_options(**options))
    return model


def plain(**options):
    """Without random draws, which are others in micro-batches."""
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [keras.Input((6,)), layers.Dense(8, "tanh"), layers.Dense(2, "sigmoid")]
    )
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse", **compile_options(**options))
    return model


def state(model):
    """All that a training may change of a model."""
    variables = [*model.variables, *model.optimizer.variables, *model.metrics_variables]
    return [np.array(ops.convert_to_numpy(one.value)) for one in variables]


def drawn():
    """Where the random numbers are."""
    return [
        random.getstate(),
        np.random.get_state()[1:3],
        keras.tree.map_structure(np.array, load("state").get_random_state() or 0),
    ]


def assert_equal(one, other):
    keras.tree.map_structure(np.testing.assert_array_equal, one, other)


def fit(model, **how):
    how = {"batch_size": 12, "epochs": 2, "shuffle": False, "verbose": 0, **how}
    return model.fit(X, Y, **how).history, model.get_weights()


def assert_untouched(model):
    own = vars(model)
    assert not own.keys() & {"train_step", "test_step", "call"}
    assert not own.keys() & {"make_train_function", "make_test_function"}


COUPLED = {
    "layer": (lambda: build(lambda: Centred(name="centred")), r"layer 'centred' \(Centred\)"),
    "added loss": (lambda: build(lambda: Summed(name="summed")), r"layer 'summed' \(Summed\)"),
    "regularizer": (
        lambda: build(lambda: layers.Dense(4, activity_regularizer=Averaged(), name="penal")),
        "layer 'penal'",
    ),
    "counter": (lambda: build(lambda: Counting(name="counting")), "'counting'.*'calls'"),
    "Dice": (lambda: build(loss=keras.losses.Dice()), "the loss 'dice'"),
    "Tversky": (lambda: build(loss=keras.losses.Tversky()), "the loss 'tversky'"),
}


@pytest.mark.parametrize("lever", LEVERS)
@pytest.mark.parametrize("case", COUPLED)
def test_what_couples_samples_is_refused_by_name_and_nothing_changes(case, lever):
    if lever == "guard" and case not in ("layer", "Dice"):
        pytest.skip("guard and split are proved by the same")
    make, culprit = COUPLED[case]
    untouched, model = make(), make()
    for one in (untouched, model):
        one.fit(X[:12], Y[:12], epochs=0, verbose=0)  # where Keras looks at its data to build
    keras.utils.set_random_seed(5)
    expected = fit(untouched, shuffle=BACKEND != "tensorflow")
    before = state(model)[: len(model.variables)]
    LEVERS[lever](model)
    keras.utils.set_random_seed(5)
    seeds = drawn()

    with pytest.raises(UsageError, match=culprit):
        fit(model, shuffle=BACKEND != "tensorflow")

    assert_equal(drawn(), seeds)
    assert_equal(state(model)[: len(before)], before)
    assert int(model.optimizer.iterations.value) == 0
    assert_untouched(model)
    assert_equal(fit(model, shuffle=BACKEND != "tensorflow"), expected)


def test_a_metric_that_needs_the_batch_is_refused_or_told_right():
    untouched = fit(plain(metrics=[Widest(name="widest")]))
    model = plain(metrics=[Widest(name="widest")])
    split(model, 5)

    history, weights = fit(model)

    for name, values in untouched[0].items():
        assert history[name] == pytest.approx(values, rel=1e-5), name
    for one, other in zip(weights, untouched[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(BACKEND == "jax", reason="JAX draws from keys, which are given to it")
def test_random_numbers_that_keras_does_not_control_are_refused_unless_allowed(capsys):
    model = build(random_layer)
    split(model, 5)
    with pytest.raises(UsageError, match=r"'noisy' .* that Keras does not control"):
        fit(model)
    assert_untouched(model)

    split(model, 5, allow=("unverified",))
    fit(model)

    assert "trained without a proof" in capsys.readouterr().err


def test_what_is_another_training_is_refused_also_where_the_unverified_is_allowed():
    model = build(Centred)
    split(model, 5, allow=["unverified"])

    with pytest.raises(UsageError, match="would not be the same training"):
        fit(model)


@pytest.mark.parametrize("allow", ["unverified", ("precision",), 1])
def test_what_may_be_allowed_is_said(allow):
    with pytest.raises(UsageError, match='contains nothing but "unverified"'):
        split(plain(), 5, allow=allow)


def two_inputs(first, second):
    left, right = keras.Input((6,)), keras.Input((6,))
    context = ops.mean(right, axis=0, keepdims=True)
    model = keras.Model([left, right], layers.Dense(2)(left + context))
    model.compile("sgd", "mse", **compile_options())
    tf = pytest.importorskip("tensorflow")
    batch = ((X[:first], X[:second]), Y[:first])
    return model, tf.data.Dataset.from_tensors(batch).repeat(2)


def test_a_batch_whose_arrays_differ_in_rows_is_refused_with_their_shapes():
    model, data = two_inputs(12, 8)
    before = state(model)
    split(model, 5)

    with pytest.raises(UsageError, match=r"inputs\[0\] \(12, 6\), inputs\[1\] \(8, 6\)"):
        model.fit(data, verbose=0)

    assert_equal(state(model)[: len(before)], before)
    assert_untouched(model)


ORDINARY = {
    "split": lambda model: split(model, 5),
    "split, larger than the batch": lambda model: split(model, 50),
    "guard": lambda model: guard(model, size=5),
    "recompute": recompute,
    "recompute, split": lambda model: (recompute(model), split(model, 5)),
    "split, recompute": lambda model: (split(model, 5), recompute(model)),
    "recompute, guard": lambda model: (recompute(model), guard(model, size=5)),
}


def deep():
    keras.utils.set_random_seed(3)
    widths = (40, 40, 4, 40, 40, 4)
    model = keras.Sequential(
        [keras.Input((6,)), *(layers.Dense(one, "tanh") for one in widths), layers.Dense(2)]
    )
    model.compile(keras.optimizers.SGD(0.1), "mse", **compile_options(metrics=["mae"]))
    return model


@pytest.mark.parametrize("levers", ORDINARY)
def test_ordinary_models_train_the_same(levers):
    if BACKEND == "jax" and levers not in ("split", "recompute, split"):
        pytest.skip("compiling takes long, and what is shown is the same")
    expected = fit(deep(), validation_data=(X, Y))
    model = deep()
    ORDINARY[levers](model)

    history, weights = fit(model, validation_data=(X, Y))

    for name, values in expected[0].items():
        assert history[name] == pytest.approx(values, rel=1e-5), name
    for one, other in zip(weights, expected[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_levers_are_undone_in_any_order(order):
    model = plain() if BACKEND == "jax" else deep()
    changes = [split(model, 5)] if BACKEND == "jax" else [recompute(model), split(model, 5)]
    fit(model)

    for index in order:
        changes[min(index, len(changes) - 1)].undo()

    assert_untouched(model)


def count_proofs(monkeypatch):
    proved = []
    prove = gate.prove

    def count(*args):
        proved.append(args)
        return prove(*args)

    monkeypatch.setattr(gate, "prove", count)
    return proved


def make_with_code(scale):
    class Scaled(layers.Layer):
        def call(self, x):
            return x * scale

    return build(Scaled)


def test_a_verdict_is_kept_for_the_model_and_for_equal_ones(monkeypatch):
    proved = count_proofs(monkeypatch)
    model = make_with_code(2.0)
    split(model, 5)
    for _ in range(2):
        fit(model)
    assert len(proved) == 1

    for scale, expected in ((2.0, 1), (3.0, 2)):
        other = make_with_code(scale)
        split(other, 5)
        fit(other)
        assert len(proved) == expected


def test_a_model_that_was_compiled_again_is_proved_again():
    model = plain()
    split(model, 5)
    fit(model)
    model.compile("sgd", keras.losses.Dice(), **compile_options())

    with pytest.raises(UsageError, match="the loss 'dice'"):
        fit(model)


def test_normalization_that_is_thawed_later_is_refused():
    model = build(layers.BatchNormalization)
    normalization = model.layers[1]
    normalization.trainable = False
    split(model, 5)
    fit(model)
    normalization.trainable = True
    model.compile("sgd", "mse", **compile_options())
    before = model.get_weights()

    with pytest.raises(UsageError, match='batchnorm="exact"'):
        fit(model)

    assert_equal(model.get_weights(), before)
    assert_untouched(model)
    split(model, 5, batchnorm="micro")
    fit(model)


def test_an_evaluation_before_any_training_is_proved():
    expected = plain().evaluate(X, Y, verbose=0)
    good, coupled = plain(), build(Centred)
    for model in (good, coupled):
        split(model, 5)

    assert good.evaluate(X, Y, verbose=0) == pytest.approx(expected, rel=1e-5)
    with pytest.raises(UsageError, match="Centred"):
        coupled.evaluate(X, Y, verbose=0)


def test_a_first_batch_of_one_row_proves_nothing():
    model = build(Centred)
    split(model, 5)
    model.train_on_batch(X[:1], Y[:1])
    before = model.get_weights()

    with pytest.raises(UsageError, match="Centred"):
        model.train_on_batch(X, Y)

    assert_equal(model.get_weights(), before)


def test_a_model_is_split_once():
    model = plain()
    with split(model, 5), pytest.raises(UsageError, match="in micro-batches already"):
        split(model, 4)
    split(model, 4)


def loaded(path):
    return keras.saving.load_model(path)


COPIED = {
    "file": lambda model, path: (model.save(path / "m.keras"), loaded(path / "m.keras"))[1],
    "pickle": lambda model, path: pickle.loads(pickle.dumps(model)),
    "deepcopy": lambda model, path: copy.deepcopy(model),
    "clone": lambda model, path: keras.models.clone_model(model),
}


@pytest.mark.parametrize("way", COPIED)
@pytest.mark.parametrize("has_trained", [False, True])
def test_what_is_copied_is_the_plain_model(way, has_trained, tmp_path):
    model = plain()
    split(model, 5)
    if has_trained:
        fit(model)

    other = COPIED[way](model, tmp_path)

    assert_untouched(other)
    if way != "clone":
        assert_equal(other.get_weights(), model.get_weights())
        np.testing.assert_allclose(other.predict(X, verbose=0), model.predict(X, verbose=0), 1e-6)


LOADS_WITHOUT_MEMFIT = """
import pickle, sys
sys.modules["memfit"] = None  # importing it is an error
import keras, numpy as np
folder = sys.argv[1]
x = np.load(folder + "/x.npy")
whole = keras.saving.load_model(folder + "/m.keras")
pickled = pickle.load(open(folder + "/m.pickle", "rb"))
weights = keras.models.clone_model(whole)
weights.load_weights(folder + "/m.weights.h5")
found = [one.predict(x, verbose=0) for one in (whole, pickled, weights)]
if keras.backend.backend() == "tensorflow":
    found.append(np.array(keras.layers.TFSMLayer(folder + "/exported", "serve")(x)))
np.save(folder + "/found.npy", np.stack(found))
"""


@pytest.mark.parametrize("is_undone", [False, True])
def test_what_is_written_loads_where_memfit_is_not(is_undone, tmp_path):
    if is_undone and BACKEND != "torch":
        pytest.skip("a process takes long, and what is shown is the same")
    model = plain() if BACKEND == "jax" else deep()
    changes = [split(model, 5)] if BACKEND == "jax" else [recompute(model), split(model, 5)]
    fit(model)
    for change in changes if is_undone else ():
        change.undo()

    model.save(tmp_path / "m.keras")
    model.save_weights(tmp_path / "m.weights.h5")
    (tmp_path / "m.pickle").write_bytes(pickle.dumps(model))
    np.save(tmp_path / "x.npy", X)
    if BACKEND == "tensorflow":
        model.export(tmp_path / "exported", verbose=False)
    subprocess.run([sys.executable, "-c", LOADS_WITHOUT_MEMFIT, str(tmp_path)], check=True)

    for found in np.load(tmp_path / "found.npy"):
        np.testing.assert_allclose(found, model.predict(X, verbose=0), rtol=1e-5, atol=1e-6)
