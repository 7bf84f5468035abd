"""Micro-batches against the batch at once. Run by tests/backends/test_each_backend.py.

Each case builds the same model twice from one seed, trains one with `memfit.split` and one
without, and compares every variable and every figure in the logs.
"""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import layers, ops

from conftest import compile_options
from memfit.errors import UsageError
from memfit.fitting.levers.micro_batches import split

BACKEND = keras.backend.backend()
RNG = np.random.default_rng(0)


def noise(*shape):
    return RNG.standard_normal(shape).astype("float32")


def dense(**options):
    model = keras.Sequential(
        [keras.Input((8,)), layers.Dense(16, "tanh"), layers.Dense(3, "softmax")]
    )
    return compiled(model, "categorical_crossentropy", metrics=["accuracy"], **options)


def compiled(model, loss="mse", optimizer=None, **options):
    model.compile(
        optimizer or keras.optimizers.SGD(0.1, momentum=0.9), loss, **compile_options(**options)
    )
    return model


def one_hot(number, kinds=3):
    return np.eye(kinds, dtype="float32")[RNG.integers(0, kinds, number)]


def difference(one, other):
    """The relative difference of two lists of arrays, taken as one vector each."""
    ours, theirs = (
        np.concatenate([np.ravel(a).astype("float64") for a in arrays]) for arrays in (one, other)
    )
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))


def train(make, data, size, steps=1, options=None, **how):
    """Returns weights, optimizer's variables and logs after some steps."""
    keras.utils.set_random_seed(1)
    model = make()
    if size is not None:
        split(model, size, **how)
    for _ in range(steps):
        logs = model.train_on_batch(*data, return_dict=True, **(options or {}))
    values = [ops.convert_to_numpy(one) for one in model.variables]
    kept = [ops.convert_to_numpy(one) for one in model.optimizer.variables]
    return values, kept, {key: float(value) for key, value in logs.items()}


def assert_same(make, data, size=3, within=1e-6, options=None, **how):
    whole = train(make, data, None, options=options)
    micro_batches = train(make, data, size, options=options, **how)
    assert micro_batches[2] == pytest.approx(whole[2], rel=1e-5, abs=1e-6)
    assert difference(micro_batches[0], whole[0]) <= within
    assert difference(micro_batches[1], whole[1]) <= within


@settings(max_examples=3 if BACKEND == "jax" else 8, deadline=None)
@given(st.integers(1, 24), st.integers(1, 26))
def test_micro_batches_of_any_size_make_the_update_of_the_whole_batch(num_samples, size):
    assert_same(dense, (noise(24, 8)[:num_samples], one_hot(24)[:num_samples]), size)


def test_sample_weights():
    weights = RNG.random(10).astype("float32")
    assert_same(dense, (noise(10, 8), one_hot(10), weights))


def test_class_weights():
    options = {"class_weight": {0: 1.0, 1: 3.0, 2: 0.5}}
    assert_same(dense, (noise(10, 8), one_hot(10)), options=options)


@pytest.mark.parametrize("reduction", ["sum", "sum_over_batch_size", "mean_with_sample_weight"])
def test_every_way_to_reduce_a_loss(reduction):
    def make():
        loss = keras.losses.CategoricalCrossentropy(reduction=reduction)
        return compiled(dense(), loss, keras.optimizers.SGD(0.01))

    assert_same(make, (noise(10, 8), one_hot(10), RNG.random(10).astype("float32")))


def masked(**options):
    inputs = keras.Input((6,), dtype="int32")
    embedded = layers.Embedding(20, 4, mask_zero=True)(inputs)
    out = layers.Dense(5, "softmax")(layers.LSTM(4, return_sequences=True)(embedded))
    return compiled(
        keras.Model(inputs, out), "sparse_categorical_crossentropy", metrics=["accuracy"], **options
    )


def tokens(number):
    ids = RNG.integers(1, 20, (number, 6))
    for row, length in zip(ids, RNG.integers(1, 7, number), strict=True):
        row[length:] = 0
    return ids.astype("int32")


def test_masks_that_leave_each_micro_batch_another_number_of_steps():
    assert_same(lambda: masked(run_eagerly=False), (tokens(10), RNG.integers(0, 5, (10, 6))))


def test_masks_with_weights():
    data = (tokens(10), RNG.integers(0, 5, (10, 6)), RNG.random((10, 6)).astype("float32"))
    assert_same(masked, data)


def two_headed(masks=False):
    left, right = keras.Input((4,), name="left"), keras.Input((6,), name="right")
    both = layers.Concatenate()([layers.Dense(8, "tanh")(left), layers.Dense(8, "tanh")(right)])
    outputs = {
        "kind": layers.Dense(3, "softmax", name="kind")(both),
        "size": layers.Dense(1, name="size")(both),
    }
    return compiled(
        keras.Model({"left": left, "right": right}, outputs),
        {"kind": "categorical_crossentropy", "size": keras.losses.MeanSquaredError("sum")},
        loss_weights={"kind": 1.0, "size": 0.05},
        metrics={"kind": ["accuracy"], "size": ["mae"]},
    )


def test_several_inputs_and_outputs_by_name():
    x = {"left": noise(10, 4), "right": noise(10, 6)}
    y = {"kind": one_hot(10), "size": noise(10, 1)}
    assert_same(two_headed, (x, y))


def test_several_outputs_of_which_one_is_masked():
    def make():
        inputs = keras.Input((6,), dtype="int32")
        embedded = layers.Embedding(20, 4, mask_zero=True)(inputs)
        steps = layers.LSTM(4, return_sequences=True)(embedded)
        pooled = layers.GlobalAveragePooling1D()(steps)
        heads = [layers.Dense(1, name="each")(steps), layers.Dense(2, name="all")(pooled)]
        return compiled(keras.Model(inputs, heads), ["mse", "mse"])

    assert_same(make, (tokens(10), [noise(10, 6, 1), noise(10, 2)]))


class Penalised(keras.layers.Layer):
    def call(self, x):
        self.add_loss(0.1 * ops.mean(ops.square(x)))
        return x


def test_regularisers_and_added_losses():
    def make():
        model = keras.Sequential(
            [
                keras.Input((8,)),
                layers.Dense(8, kernel_regularizer="l2", activity_regularizer="l1"),
                Penalised(),
                layers.Dense(1),
            ]
        )
        return compiled(model)

    assert_same(make, (noise(10, 8), noise(10, 1)))


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = layers.Dense(8, "tanh")
        self.out = layers.Dense(1)
        self.unused = layers.Dense(2)

    def build(self, shape):
        self.hidden.build(shape)
        self.out.build((None, 8))
        self.unused.build((None, 8))
        super().build(shape)

    def call(self, x):
        return self.out(self.hidden(x))


@pytest.mark.filterwarnings("ignore:Gradients do not exist")
@pytest.mark.filterwarnings("ignore:.*do not have gradients")
def test_a_subclassed_model_with_a_layer_that_it_does_not_use():
    assert_same(lambda: compiled(Subclassed()), (noise(10, 8), noise(10, 1)))


def batch_mean(y_true, y_pred):
    """Looks at the batch as a whole: no sum over samples gives it."""
    return ops.max(ops.abs(ops.mean(y_true, axis=0) - ops.mean(y_pred, axis=0)))


def test_a_metric_that_needs_the_whole_batch():
    def make():
        return compiled(dense(), "categorical_crossentropy", metrics=[batch_mean])

    assert_same(make, (noise(10, 8), one_hot(10)))


@pytest.mark.parametrize(
    "make_optimizer",
    [
        lambda: keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)),
        lambda: keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5),
        lambda: keras.optimizers.SGD(0.1, global_clipnorm=0.01),
        lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), 4.0),
    ],
    ids=["schedule", "moving average", "clipping", "loss scaling"],
)
def test_the_optimizer_counts_batches_not_micro_batches(make_optimizer):
    def make():
        return compiled(dense(), "categorical_crossentropy", make_optimizer())

    data = (noise(10, 8), one_hot(10))
    whole, micro_batches = train(make, data, None, 3), train(make, data, 4, 3)

    assert difference(micro_batches[0], whole[0]) <= 1e-5
    assert difference(micro_batches[1], whole[1]) <= 1e-5


@pytest.mark.parametrize(
    "options",
    [
        {"run_eagerly": False},
        {"jit_compile": True},
        pytest.param({"run_eagerly": True}, marks=[pytest.mark.long] * (BACKEND == "jax")),
        pytest.param(
            {"steps_per_execution": 2},
            marks=pytest.mark.skipif(BACKEND == "torch", reason="Keras has none on torch"),
        ),
    ],
    ids=str,
)
def test_the_way_a_model_is_compiled_is_respected(options):
    if BACKEND != "tensorflow" and "jit_compile" in options:
        pytest.skip("JAX always compiles; torch.compile of Keras models is not dependable on CPU")
    x, y = noise(24, 8), one_hot(24)

    def fit(size):
        keras.utils.set_random_seed(1)
        model = compiled(dense(), "categorical_crossentropy", metrics=["accuracy"], **options)
        if size:
            split(model, size)
        history = model.fit(x, y, batch_size=10, epochs=2, shuffle=False, verbose=0)
        return model.get_weights(), history.history

    whole, micro_batches = fit(None), fit(4)

    assert difference(micro_batches[0], whole[0]) <= 1e-5
    assert micro_batches[1]["loss"] == pytest.approx(whole[1]["loss"], rel=1e-5)
    assert micro_batches[1]["accuracy"] == pytest.approx(whole[1]["accuracy"], rel=1e-5)


def test_an_epoch_with_a_short_last_batch_and_validation_is_the_same():
    x, y = noise(53, 8), one_hot(53)

    def fit(size):
        keras.utils.set_random_seed(1)
        model = dense()
        if size:
            split(model, size)
        history = model.fit(x, y, batch_size=16, epochs=3, validation_split=0.3, verbose=0)
        return model.get_weights(), history.history

    whole, micro_batches = fit(None), fit(5)

    assert difference(micro_batches[0], whole[0]) <= 1e-5
    for name, values in whole[1].items():
        assert micro_batches[1][name] == pytest.approx(values, rel=1e-5), name


def normalising():
    return compiled(
        keras.Sequential(
            [keras.Input((8,)), layers.Dense(8), layers.BatchNormalization(), layers.Dense(1)]
        )
    )


def test_batch_normalisation_is_refused_unless_it_is_declared():
    with pytest.raises(UsageError, match='batchnorm="micro"'):
        split(normalising(), 4)


def test_declared_normalisation_of_micro_batches_moves_its_statistics_once():
    data = (noise(12, 8), noise(12, 1))
    whole, micro_batches = (
        train(normalising, data, None),
        train(normalising, data, 4, batchnorm="micro"),
    )

    names = [one.path for one in normalising().variables]
    index = next(i for i, name in enumerate(names) if name.endswith("moving_mean"))
    np.testing.assert_allclose(micro_batches[0][index], whole[0][index], rtol=1e-5, atol=1e-7)


def test_a_change_is_printed_and_undone():
    data = (noise(10, 8), one_hot(10))
    keras.utils.set_random_seed(1)
    model = dense()
    change = split(model, 4)
    assert "micro-batches of 4 samples" in str(change)
    change.undo()
    model.train_on_batch(*data)

    assert "train_step" not in model.__dict__
    assert difference(model.get_weights(), train(dense, data, None)[0][:4]) <= 1e-7


def test_a_model_that_is_split_can_be_saved(tmp_path):
    model = dense()
    split(model, 4)
    model.fit(noise(10, 8), one_hot(10), verbose=0)

    model.save(tmp_path / "model.keras")

    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert difference(loaded.get_weights(), model.get_weights()) == 0


class OwnStep(keras.Model):
    def train_step(self, *args):
        raise NotImplementedError


def stateful():
    inputs = keras.Input(batch_shape=(4, 3, 2))
    return compiled(keras.Model(inputs, layers.LSTM(2, stateful=True)(inputs)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: keras.Sequential([keras.Input((1,))]), "not compiled"),
        (lambda: compiled(OwnStep()), "train_step of its own"),
        (stateful, "batches of 4 samples"),
        (lambda: "a model", "`model` must be a Keras model"),
    ],
    ids=["not compiled", "own step", "stateful", "no model"],
)
def test_what_cannot_be_split_is_refused_with_the_reason(make, message):
    with pytest.raises(UsageError, match=message):
        split(make(), 4)


@pytest.mark.parametrize("size", [0, -1, 2.5, True, "4"])
def test_a_size_that_is_no_number_of_samples_is_refused(size):
    with pytest.raises(UsageError, match="`size` must be a whole number"):
        split(dense(), size)
