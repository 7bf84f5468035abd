"""BatchNormalization of whole batches in micro-batches. Run by tests/backends/test_each_backend.py.

Each case builds the same model twice from one seed, trains one with `batchnorm="exact"` and one
without memfit, and compares every variable and every figure in the logs.
"""

import subprocess
import sys

import keras
import numpy as np
import pytest
from keras import layers, ops

from conftest import compile_options
from memfit.errors import UsageError
from memfit.fitting.levers.micro_batches import install, make_micro_batches, split

BACKEND = keras.backend.backend()
RNG = np.random.default_rng(0)
HAS_CONVOLUTIONS = pytest.mark.skipif(BACKEND == "jax", reason="very slow on JAX's CPU backend")


def compiles_long(test):
    """Compiling takes most of the time: what others show here, JAX shows in `make test-long`."""
    return pytest.mark.long(test) if BACKEND == "jax" else test


def noise(*shape):
    return RNG.standard_normal(shape).astype("float32")


def one_hot(number, kinds=3):
    return np.eye(kinds, dtype="float32")[RNG.integers(0, kinds, number)]


def compiled(model, loss="mse", **options):
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss, **compile_options(**options))
    return model


def sequential(**options):
    model = keras.Sequential(
        [
            keras.Input((8,)),
            layers.BatchNormalization(),
            layers.Dense(16, "tanh"),
            layers.BatchNormalization(momentum=0.8, scale=False),
            layers.Dense(3, "softmax"),
        ]
    )
    return compiled(model, "categorical_crossentropy", metrics=["accuracy"], **options)


def residual(blocks=1):
    inputs = keras.Input((8,))
    x = layers.Dense(12)(inputs)
    for _ in range(blocks):
        branch = layers.Activation("tanh")(layers.BatchNormalization()(x))
        branch = layers.BatchNormalization()(layers.Dense(12)(branch))
        x = layers.Add()([x, branch])
    return compiled(
        keras.Model(inputs, layers.Dense(3, "softmax")(x)),
        "categorical_crossentropy",
        metrics=["accuracy"],
    )


def convolutional():
    inputs = keras.Input((6, 6, 2))
    x = layers.Conv2D(4, 3, padding="same", use_bias=False)(inputs)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    shortcut = layers.BatchNormalization()(layers.Conv2D(4, 1, use_bias=False)(x))
    x = layers.BatchNormalization()(layers.Conv2D(4, 3, padding="same", use_bias=False)(x))
    x = layers.GlobalAveragePooling2D()(layers.ReLU()(layers.Add()([x, shortcut])))
    model = keras.Model(inputs, layers.Dense(3, "softmax")(x))
    return compiled(model, "categorical_crossentropy", metrics=["accuracy"])


def difference(one, other):
    """The relative difference of two lists of arrays, taken as one vector each."""
    ours, theirs = (
        np.concatenate([np.ravel(a).astype("float64") for a in arrays]) for arrays in (one, other)
    )
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))


def train(make, data, size, steps=3):
    """Returns variables, moving statistics, optimizer's variables and logs after some steps."""
    keras.utils.set_random_seed(1)
    model = make()
    if size is not None:
        split(model, size, batchnorm="exact")
    logs = []
    for _ in range(steps):
        told = model.train_on_batch(*data, return_dict=True)
        logs.append({key: float(value) for key, value in told.items()})
    moving = [one for one in model.non_trainable_variables if "moving" in one.path]
    groups = (model.variables, moving, model.optimizer.variables)
    return [[ops.convert_to_numpy(one) for one in group] for group in groups], logs


def assert_same(make, data, size=4, steps=3):
    (whole, whole_logs), (micro_batches, logs) = (
        train(make, data, one, steps) for one in (None, size)
    )
    for ours, theirs in zip(logs, whole_logs, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-6)
    for ours, theirs in zip(micro_batches, whole, strict=True):
        assert difference(ours, theirs) <= 1e-5


@pytest.mark.parametrize("steps", [pytest.param(1, marks=pytest.mark.long), 3])
def test_a_sequential_model_trains_as_with_whole_batches(steps):
    assert_same(lambda: sequential(run_eagerly=False), (noise(22, 8), one_hot(22)), steps=steps)


@compiles_long
@pytest.mark.parametrize("size", [1, 40])
def test_micro_batches_of_one_sample_or_of_all_train_as_with_whole_batches(size):
    assert_same(sequential, (noise(22, 8), one_hot(22)), size)


@pytest.mark.parametrize(
    "size", [5, *(pytest.param(one, marks=pytest.mark.long) for one in (1, 40))]
)
def test_a_residual_model_trains_as_with_whole_batches(size):
    assert_same(lambda: residual(blocks=2), (noise(22, 8), one_hot(22)), size)


@compiles_long
@HAS_CONVOLUTIONS
@pytest.mark.parametrize("size", [pytest.param(4, marks=pytest.mark.long), 5])
def test_convolutions_train_as_with_whole_batches(size):
    assert_same(convolutional, (noise(12, 6, 6, 2), one_hot(12)), size)


def test_sample_weights():
    weights = RNG.random(10).astype("float32")
    assert_same(sequential, (noise(10, 8), one_hot(10), weights))


def nested():
    block = keras.Sequential([keras.Input((8,)), layers.Dense(8), layers.BatchNormalization()])
    inputs = keras.Input((8,))
    inner_input = keras.Input((8,))
    inner = keras.Model(inner_input, layers.Add()([inner_input, block(block(inner_input))]))
    return compiled(keras.Model(inputs, layers.Dense(1)(layers.Activation("tanh")(inner(inputs)))))


@compiles_long
def test_inner_models_and_a_layer_that_is_called_twice():
    assert_same(nested, (noise(10, 8), noise(10, 1)))


class Named(layers.BatchNormalization):
    """A class made of BatchNormalization, with nothing of its own in how it is called."""

    def get_config(self):
        return {**super().get_config(), "note": "named"}


class NamedTwice(Named):
    pass


def of_own_classes(**options):
    inner = keras.Sequential([keras.Input((8,)), Named(**options), layers.Dense(8)])
    inputs = keras.Input((8,))
    x = NamedTwice(**options)(inner(layers.Dense(8)(inputs)))
    return compiled(keras.Model(inputs, layers.Dense(1)(x)))


def test_classes_made_of_batch_normalisation():
    assert_same(of_own_classes, (noise(10, 8), noise(10, 1)))


@compiles_long
def test_renormalisation():
    clipping = {"rmax": 2.0, "rmin": 0.5, "dmax": 1.0}
    data = (noise(10, 8), noise(10, 1))
    assert_same(lambda: of_own_classes(renorm=True, renorm_clipping=clipping), data)


@compiles_long
def test_declared_normalisation_of_micro_batches_moves_all_statistics_once():
    data = (noise(12, 8), noise(12, 1))

    def train_some(size):
        keras.utils.set_random_seed(1)
        model = of_own_classes(renorm=True)
        if size:
            split(model, size, batchnorm="micro")
        model.train_on_batch(*data)
        inner = next(one for one in model.layers if isinstance(one, keras.Sequential))
        return ops.convert_to_numpy(inner.layers[0].renorm_mean)

    np.testing.assert_allclose(train_some(4), train_some(None), rtol=1e-5, atol=1e-7)


def masked():
    inputs = keras.Input((6,), dtype="int32")
    x = layers.Embedding(20, 4, mask_zero=True)(inputs)
    x = layers.LSTM(4, return_sequences=True)(layers.BatchNormalization()(x))
    x = layers.BatchNormalization()(x)
    return compiled(
        keras.Model(inputs, layers.Dense(5, "softmax")(x)), "sparse_categorical_crossentropy"
    )


def test_masks_of_a_batch_of_which_some_samples_are_empty():
    ids = RNG.integers(1, 20, (10, 6)).astype("int32")
    for row, length in zip(ids, RNG.integers(1, 7, 10), strict=True):
        row[length:] = 0
    ids[4:6] = 0  # a whole micro-batch

    assert_same(masked, (ids, RNG.integers(0, 5, (10, 6))), size=2)


class Penalised(keras.layers.Layer):
    def call(self, x):
        self.add_loss(0.1 * ops.mean(ops.square(x)))
        return x


@compiles_long
def test_several_outputs_regularisers_and_added_losses():
    def make():
        left, right = keras.Input((4,), name="left"), keras.Input((6,), name="right")
        x = layers.Concatenate()([layers.Dense(8)(left), layers.Dense(8)(right)])
        first = layers.Dense(3, name="first", activity_regularizer="l1")(x)
        x = Penalised()(layers.Dense(8, kernel_regularizer="l2")(layers.BatchNormalization()(x)))
        outputs = {"first": first, "second": layers.Dense(2, name="second")(x)}
        return compiled(keras.Model({"left": left, "right": right}, outputs), ["mse", "mae"])

    x = {"left": noise(10, 4), "right": noise(10, 6)}
    assert_same(make, (x, {"first": noise(10, 3), "second": noise(10, 2)}))


def test_a_frozen_layer_stays_as_it_is():
    def make():
        model = residual()
        model.layers[2].trainable = False
        return compiled(model, "categorical_crossentropy")

    assert_same(make, (noise(10, 8), one_hot(10)))


@compiles_long
def test_half_precision_as_with_whole_batches():
    keras.config.set_dtype_policy("mixed_bfloat16")
    data = (noise(12, 8), one_hot(12))
    try:
        (whole, _), (micro_batches, _) = (train(residual, data, size, 1) for size in (None, 4))
    finally:
        keras.config.set_dtype_policy("float32")
    assert difference(micro_batches[0], whole[0]) <= 1e-2


@compiles_long
def test_an_epoch_with_a_short_last_batch_and_validation_is_the_same():
    x, y = noise(53, 8), one_hot(53)

    def fit(size):
        keras.utils.set_random_seed(1)
        model = sequential()
        if size:
            split(model, size, batchnorm="exact")
        history = model.fit(x, y, batch_size=16, epochs=2, validation_split=0.3, verbose=0)
        return model.get_weights(), history.history, model.predict(x, verbose=0)

    whole, micro_batches = fit(None), fit(5)

    assert difference(micro_batches[0], whole[0]) <= 1e-5
    for name, values in whole[1].items():
        assert micro_batches[1][name] == pytest.approx(values, rel=1e-5), name
    np.testing.assert_allclose(micro_batches[2], whole[2], rtol=1e-4, atol=1e-6)


@compiles_long
def test_it_runs_eagerly():
    def make():
        return sequential(run_eagerly=True)

    assert_same(make, (noise(6, 8), one_hot(6)), steps=1)


def with_dropout(rate=0.5):
    model = keras.Sequential(
        [
            keras.Input((8,)),
            layers.Dense(16, "tanh"),
            layers.BatchNormalization(),
            layers.Dropout(rate, seed=3),
            layers.Dense(16, "tanh"),
            layers.BatchNormalization(),
            layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.SGD(1.0), "mse")
    return model


def test_dropout_is_the_same_when_a_micro_batch_is_computed_again():
    """The update is the gradient: the loss changes along it as much as it says."""
    data = (noise(12, 8), noise(12, 1))

    model = with_dropout()
    split(model, 5, batchnorm="exact")
    model.train_on_batch(*data)
    begin = [ops.convert_to_numpy(one).copy() for one in model.variables]

    def learn(direction=(), distance=0.0):
        for one, value in zip(model.variables, begin, strict=True):
            one.assign(value)
        for one, step in zip(model.trainable_variables, direction, strict=False):
            one.assign(ops.convert_to_numpy(one) + distance * step)
        before = [ops.convert_to_numpy(one).copy() for one in model.trainable_variables]
        model.reset_metrics()
        loss = float(model.train_on_batch(*data))
        after = [ops.convert_to_numpy(one) for one in model.trainable_variables]
        return loss, [old - new for old, new in zip(before, after, strict=True)]

    _, gradient = learn()
    _, again = learn()
    length = np.sqrt(sum(np.sum(one**2) for one in gradient))
    direction = [one / length for one in gradient]
    higher, lower = (learn(direction, distance)[0] for distance in (1e-2, -1e-2))

    assert difference(again, gradient) == 0
    assert (higher - lower) / 2e-2 == pytest.approx(length, rel=1e-2)


@compiles_long
def test_each_micro_batch_and_each_batch_has_other_random_numbers():
    inputs = keras.Input((1,))
    out = layers.Dropout(0.5, seed=3)(layers.BatchNormalization(center=False)(inputs))
    model = compiled(keras.Model(inputs, out))
    split(model, 8, batchnorm="exact")
    x = np.repeat([[1.0], [-1.0]], 16, axis=0).astype("float32")

    first, second = (ops.convert_to_numpy(model(x, training=True))[:, 0] != 0 for _ in range(2))

    assert not np.array_equal(first[:8], first[8:16])
    assert not np.array_equal(first, second)


@compiles_long
def test_another_size_holds_from_the_next_batch():
    data = (noise(22, 8), one_hot(22))
    keras.utils.set_random_seed(1)
    model = residual()
    micro_batches = make_micro_batches(model, 22, "exact")
    install(model, micro_batches, "exact")
    for size in (4, 7):
        micro_batches.resize(size)
        model.train_on_batch(*data)

    values = [ops.convert_to_numpy(one) for one in model.variables]
    assert difference(values, train(residual, data, None, steps=2)[0][0]) <= 1e-5


def test_a_change_says_what_it_costs_and_is_undone():
    data = (noise(10, 8), one_hot(10))
    keras.utils.set_random_seed(1)
    model = residual()

    change = split(model, 4, batchnorm="exact")
    assert "micro-batches of 4 samples" in str(change)
    assert "one more forward pass" in str(change)
    change.undo()
    model.train_on_batch(*data)

    assert not {"call", "train_step", "test_step"} & set(vars(model))
    values = [ops.convert_to_numpy(one) for one in model.variables]
    assert difference(values, train(residual, data, None, 1)[0][0]) <= 1e-7


def test_a_model_without_such_layers_is_split_as_any_other():
    model = compiled(keras.Sequential([keras.Input((8,)), layers.Dense(1)]))

    change = split(model, 4, batchnorm="exact")

    assert "BatchNormalization" not in str(change)
    assert "micro-batches of 4 samples" in str(change)


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.norm = layers.BatchNormalization()

    def call(self, x):
        return self.norm(x)


def wrapped():
    inputs = keras.Input((4, 8))
    return compiled(
        keras.Model(inputs, layers.TimeDistributed(layers.BatchNormalization())(inputs))
    )


class OwnCall(layers.BatchNormalization):
    def call(self, inputs, training=None, mask=None):
        return super().call(inputs, training=training, mask=mask)


class OwnMoments(layers.BatchNormalization):
    def _moments(self, inputs, mask):
        return super()._moments(inputs, mask)


def holding(layer):
    return compiled(keras.Sequential([keras.Input((8,)), layer, layers.Dense(1)]))


def without_samples():
    inputs = keras.Input((8,))
    centre = ops.mean(inputs, axis=0, keepdims=True)
    x = layers.BatchNormalization()(layers.Dense(8)(inputs))
    return compiled(keras.Model(inputs, x - centre))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: compiled(Subclassed()), 'Subclassed.*batchnorm="micro"'),
        (lambda: compiled(keras.Sequential([layers.BatchNormalization()])), "not built"),
        (wrapped, "TimeDistributed"),
        (without_samples, "first axis is the samples"),
        (lambda: holding(OwnCall(name="mine")), r"'mine' is a OwnCall.*a call\(\) of its own"),
        (lambda: holding(OwnMoments()), r"OwnMoments.*a _moments\(\) of its own"),
    ],
    ids=["subclassed", "not built", "inside a layer", "no samples", "own call", "own moments"],
)
def test_what_cannot_be_cut_is_refused_with_the_reason(make, message):
    with pytest.raises(UsageError, match=message):
        split(make(), 4, batchnorm="exact")


def thawed(batchnorm, size):
    """Trained frozen, then once more after its BatchNormalization was thawed."""
    x, y = noise(12, 8), noise(12, 1)
    keras.utils.set_random_seed(1)
    model = holding(layers.BatchNormalization(trainable=False))
    split(model, size, batchnorm=batchnorm)
    model.train_on_batch(x, y)
    model.layers[0].trainable = True
    compiled(model).train_on_batch(x, y)
    return x, ops.convert_to_numpy(model.layers[0].moving_mean)


def test_a_layer_that_is_thawed_after_the_split_is_not_trained_otherwise():
    with pytest.raises(UsageError, match='batchnorm="micro"'):
        thawed(None, 4)


def test_a_layer_that_is_thawed_after_the_split_is_normalised_exactly_from_then_on():
    x, moving_mean = thawed("exact", 4)

    np.testing.assert_allclose(moving_mean, 0.01 * x.mean(axis=0), rtol=1e-4, atol=1e-7)


def test_a_layer_that_is_thawed_after_the_split_moves_its_statistics_once():
    x, moving_mean = thawed("micro", 4)

    np.testing.assert_allclose(moving_mean, 0.01 * x.mean(axis=0), rtol=1e-4, atol=1e-7)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="XLA on TensorFlow only")
def test_xla_is_refused_with_what_to_do():
    with pytest.raises(UsageError, match="jit_compile=False"):
        split(sequential(jit_compile=True), 4, batchnorm="exact")


def test_an_unknown_word_is_refused():
    with pytest.raises(UsageError, match=r'"exact", "micro" or left out.*Received'):
        split(residual(), 4, batchnorm="all")


DEEP = """
import sys

import keras
import numpy as np

from memfit.fitting.levers.micro_batches import split
from memfit.measure.malloc import trim
from memfit.measure.peak import Peak, read_tree_bytes

x = np.random.default_rng(0).random((8192, 128), "float32")
y = x[:, :1]
for how in ("exact", "whole"):
    parts = [keras.Input((128,))]
    for _ in range(3):
        parts += [keras.layers.Dense(128, "tanh") for _ in range(6)]
        parts += [keras.layers.BatchNormalization()]
    model = keras.Sequential([*parts, keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    if how == "exact":
        split(model, 256, batchnorm="exact")
    for number in map(int, sys.argv[1:]):
        model.train_on_batch(x[:number], y[:number])
    trim()
    idle = read_tree_bytes()
    with Peak() as peak:
        model.train_on_batch(x, y)
    print(peak.read() - idle, flush=True)
"""


# What is traced or compiled first is not of interest; but TensorFlow keeps what it took once.
WARM = ("300", "301") if BACKEND == "tensorflow" else ("8192",)


@compiles_long
def test_a_deep_model_needs_much_less_memory():
    done = subprocess.run(
        [sys.executable, "-c", DEEP, *WARM], capture_output=True, text=True, check=True
    )

    exact_bytes, whole_bytes = map(int, done.stdout.split()[-2:])
    assert exact_bytes <= 0.6 * whole_bytes
