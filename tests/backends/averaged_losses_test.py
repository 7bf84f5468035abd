"""What losses are averaged over, seen when they are reduced. Run by test_each_backend.py.

Each case trains a model once in micro-batches and its twin without memfit, on copies of the same
data, and compares every variable and every figure.
"""

import keras
import numpy as np
import pytest
from keras import layers, ops

from conftest import compile_options
from memfit.errors import UsageError
from memfit.fitting.levers.micro_batches import split

BACKEND = keras.backend.backend()
RNG = np.random.default_rng(0)
# Micro-batches of three: the second of them has nothing but these rows.
SECOND = slice(3, 6)
IGNORED = -1


def compiles_long(test):
    """Compiling takes most of the time: what others show here, JAX shows in `make test-long`."""
    return pytest.mark.long(test) if BACKEND == "jax" else test


def noise(*shape):
    return RNG.standard_normal(shape).astype("float32")


def weights(*shape, dtype="float32"):
    return RNG.integers(0, 4, shape).astype(dtype) if dtype != "float32" else RNG.random(shape, "f")


def tokens(number):
    ids = RNG.integers(1, 10, (number, 5)).astype("int32")
    for row, length in zip(ids, RNG.integers(1, 6, number), strict=True):
        row[length:] = 0
    return ids


def labels(*shape, ignored=None):
    found = RNG.integers(0, 4, shape).astype("int32")
    if ignored is not None:
        found[RNG.random(shape) < 0.4] = ignored
        found[SECOND] = ignored
    return found


def compiled(model, loss=None, optimizer=None, **options):
    model.compile(optimizer or keras.optimizers.SGD(0.1), loss, **compile_options(**options))
    return model


def dense(loss="mse", **options):
    parts = [keras.Input((4,)), layers.Dense(6, "tanh"), layers.Dense(3)]
    return compiled(keras.Sequential(parts), loss, **options)


def tagger(loss="sparse_categorical_crossentropy", masks=False, **options):
    """Tells one of four kinds for each of five words."""
    inputs = keras.Input((5,), dtype="int32")
    x = layers.Embedding(10, 4, mask_zero=masks)(inputs)
    return compiled(keras.Model(inputs, layers.Dense(4, "softmax")(x)), loss, **options)


def ignoring(**options):
    return keras.losses.SparseCategoricalCrossentropy(ignore_class=IGNORED, **options)


def copied(data):
    return keras.tree.map_structure(np.array, data)


def difference(one, other):
    """The relative difference of two lists of arrays, taken as one vector each."""
    ours, theirs = (
        np.concatenate([np.ravel(a).astype("float64") for a in arrays]) for arrays in (one, other)
    )
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))


def values(model):
    return [ops.convert_to_numpy(one) for one in model.variables]


def run(make, data, size, *, epochs=1, evaluates=False, **how):
    """Returns the variables and the figures after some epochs of one batch, or an evaluation."""
    keras.utils.set_random_seed(1)
    model = make()
    if size is not None:
        split(model, size, **how)
    x, y, sample_weight = (*copied(data), None, None)[:3]
    given = {"sample_weight": sample_weight, "batch_size": 10, "verbose": 0}
    if evaluates:
        return values(model), model.evaluate(x, y, return_dict=True, **given)
    history = model.fit(x, y, epochs=epochs, shuffle=False, **given).history
    return values(model), {name: figures[-1] for name, figures in history.items()}


def assert_same(make, data, **how):
    (whole, whole_logs), (micro_batches, logs) = (
        run(make, data, size, **how) for size in (None, 3)
    )
    assert logs == pytest.approx(whole_logs, rel=1e-5, abs=1e-6)
    assert difference(micro_batches, whole) <= 1e-5


@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "sum", "mean_with_sample_weight"])
def test_a_loss_that_ignores_a_class_where_a_micro_batch_has_nothing_else(reduction):
    data = (tokens(10), labels(10, 5, ignored=IGNORED))
    assert_same(lambda: tagger(ignoring(reduction=reduction), metrics=["accuracy"]), data)


@compiles_long
@pytest.mark.parametrize("reduction", ["mean", "sum", "mean_with_sample_weight"])
def test_a_loss_that_ignores_a_class_on_masked_positions_with_weights(reduction):
    data = (tokens(10), labels(10, 5, ignored=IGNORED), weights(10, 5))

    def make():
        return tagger(ignoring(reduction=reduction), masks=True, weighted_metrics=["accuracy"])

    assert_same(make, data)


@compiles_long
@pytest.mark.parametrize("evaluates", [False, True], ids=["fit", "evaluate"])
def test_a_segmentation_that_ignores_a_class(evaluates):
    def make():
        inputs = keras.Input((4, 4, 2))
        loss = keras.losses.SparseCategoricalCrossentropy(True, ignore_class=255)
        return compiled(keras.Model(inputs, layers.Dense(4)(inputs)), loss)

    assert_same(make, (noise(10, 4, 4, 2), labels(10, 4, 4, ignored=255)), evaluates=evaluates)


class Composed(keras.losses.Loss):
    """Calls two losses inside, each averaged over something else."""

    def __init__(self):
        super().__init__()
        self.parts = [ignoring(), keras.losses.SparseCategoricalCrossentropy(ignore_class=0)]

    def call(self, y_true, y_pred):
        return self.parts[0](y_true, y_pred) + self.parts[1](ops.maximum(y_true, 0), y_pred)


class Reweighing(keras.losses.SparseCategoricalCrossentropy):
    """Makes the weights itself, by class."""

    def __call__(self, y_true, y_pred, sample_weight=None):
        by_class = ops.convert_to_tensor([1.0, 2.0, 3.0, 0.5])
        return super().__call__(y_true, y_pred, ops.take(by_class, ops.cast(y_true, "int32")))


class OwnLoss(keras.Model):
    """Calls a loss of Keras in a `compute_loss` of its own, and computes with the targets."""

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        counts = ops.cast(y * 1 > 0, "float32")
        return ignoring()(y, y_pred) + ops.mean(counts * ops.mean(ops.square(y_pred), -1))


class Endpoint(layers.Layer):
    """Adds a loss of Keras to the model by itself."""

    def call(self, y_pred, y_true):
        self.add_loss(ignoring()(y_true, y_pred))
        return y_pred


def with_own_loss():
    inputs = keras.Input((5,), dtype="int32")
    return compiled(OwnLoss(inputs, layers.Dense(4, "softmax")(layers.Embedding(10, 4)(inputs))))


def with_endpoint():
    inputs, targets = keras.Input((5,), dtype="int32"), keras.Input((5,), dtype="int32")
    y_pred = layers.Dense(4, "softmax")(layers.Embedding(10, 4)(inputs))
    return compiled(keras.Model([inputs, targets], Endpoint()(y_pred, targets)))


@pytest.mark.parametrize(
    ("make", "data"),
    [
        (lambda: tagger(Composed()), (tokens(10), labels(10, 5, ignored=IGNORED))),
        (
            lambda: tagger(Reweighing(reduction="mean_with_sample_weight")),
            (tokens(10), labels(10, 5)),
        ),
        (with_own_loss, (tokens(10), labels(10, 5, ignored=IGNORED))),
        (with_endpoint, ([tokens(10), labels(10, 5, ignored=IGNORED)],)),
    ],
    ids=["inside a loss", "own weights", "own compute_loss", "added, without targets"],
)
def test_losses_of_keras_wherever_they_are_called(make, data):
    assert_same(make, data)


@compiles_long
def test_an_own_compute_loss_has_tensors_in_every_way_to_train():
    data = (tokens(10), labels(10, 5, ignored=IGNORED))
    fitted, _ = run(with_own_loss, data, 3)
    _, evaluated = run(with_own_loss, data, 3, evaluates=True)
    keras.utils.set_random_seed(1)
    model = with_own_loss()
    split(model, 3)

    tested = model.test_on_batch(*copied(data), return_dict=True)
    model.train_on_batch(*copied(data))

    assert float(tested["loss"]) == pytest.approx(evaluated["loss"], rel=1e-6)
    assert difference(values(model), fitted) <= 1e-7


def mean_error(y_true, y_pred):
    kinds = ops.one_hot(ops.cast(y_true, "int32"), 4)
    return ops.mean(ops.abs(kinds - y_pred), axis=-1)


@pytest.mark.parametrize("epochs", [1, pytest.param(2, marks=pytest.mark.long)])
def test_masks_with_weights_of_each_step_and_weighted_metrics_in_fit(epochs):
    data = (tokens(10), labels(10, 5), weights(10, 5))

    def make():
        return tagger(masks=True, metrics=["accuracy"], weighted_metrics=["accuracy"])

    assert_same(make, data, epochs=epochs)


@pytest.mark.parametrize("evaluates", [False, True], ids=["fit", "evaluate"])
@pytest.mark.parametrize("runs_eagerly", [True, False], ids=["eager", "compiled"])
def test_own_metrics_on_masked_outputs(evaluates, runs_eagerly):
    if BACKEND != "tensorflow" and runs_eagerly:
        pytest.skip("the graph makes a difference on TensorFlow only")

    def make():
        metrics = {"metrics": [mean_error], "weighted_metrics": [mean_error]}
        return tagger(masks=True, run_eagerly=runs_eagerly, **metrics)

    assert_same(make, (tokens(10), labels(10, 5), weights(10, 5)), evaluates=evaluates)


def largest_mean(y_true, y_pred):
    """Looks at the batch as a whole: no sum over samples gives it."""
    return ops.max(ops.abs(ops.mean(ops.subtract(y_true, y_pred), axis=0)))


def test_several_outputs_of_which_the_second_needs_the_totals():
    def make():
        inputs = keras.Input((5,), dtype="int32")
        x = layers.Embedding(10, 4, mask_zero=True)(inputs)
        pooled = layers.GlobalAveragePooling1D()(x)
        heads = {
            "size": layers.Dense(2, name="size")(pooled),
            "kind": layers.Dense(4, "softmax", name="kind")(x),
        }
        return compiled(
            keras.Model(inputs, heads),
            {"size": keras.losses.MeanSquaredError("sum"), "kind": ignoring()},
            loss_weights={"size": 0.1, "kind": 2.0},
            metrics={"size": [largest_mean], "kind": ["accuracy"]},
        )

    y = {"size": noise(10, 2), "kind": labels(10, 5, ignored=IGNORED)}
    assert_same(make, (tokens(10), y, {"size": weights(10), "kind": weights(10, 5)}))


class Drawing(layers.Layer):
    """Draws a number each time that it is called."""

    def __init__(self):
        super().__init__()
        self.seeds = keras.random.SeedGenerator(3)

    def call(self, x):
        return x + 0.0 * keras.random.uniform(ops.shape(x), seed=self.seeds)


def test_a_look_at_the_whole_batch_leaves_no_trace_in_seeds():
    inputs = keras.Input((5,), dtype="int32")
    x = Drawing()(layers.Embedding(10, 4)(inputs))
    model = compiled(keras.Model(inputs, layers.Dense(4, "softmax")(x)), ignoring())
    split(model, 3)
    (drawing,) = (one for one in model.layers if isinstance(one, Drawing))
    before = ops.convert_to_numpy(drawing.seeds.state).copy()

    model.fit(tokens(10), labels(10, 5, ignored=IGNORED), batch_size=10, verbose=0)

    drawn = ops.convert_to_numpy(drawing.seeds.state) - before
    assert drawn.max() == 4  # once for each micro-batch


@compiles_long
def test_a_loss_that_is_one_number_is_not_summed():
    class OneNumber(keras.losses.Loss):
        def call(self, y_true, y_pred):
            return ops.mean(ops.square(y_true - y_pred))

    assert_same(lambda: dense(OneNumber(reduction="sum")), (noise(10, 4), noise(10, 3)))


@pytest.mark.parametrize("evaluates", [False, True], ids=["fit", "evaluate"])
def test_losses_that_are_not_reduced(evaluates):
    def make():
        inputs = keras.Input((4,))
        outputs = [layers.Dense(size, name=name)(inputs) for name, size in (("a", 2), ("b", 3))]
        losses = [keras.losses.MeanSquaredError(reduction=None), "mae"]
        graph = {"run_eagerly": False} if BACKEND == "tensorflow" else {}
        return compiled(keras.Model(inputs, outputs), losses, loss_weights=[0.5, 2.0], **graph)

    data = (noise(10, 4), [noise(10, 2), noise(10, 3)], [weights(10), weights(10)])
    if BACKEND == "tensorflow":
        assert_same(make, data, evaluates=evaluates)
    elif evaluates:  # nor can plain Keras train with such losses there
        with pytest.raises(UsageError, match="a training step, and one of this model raises"):
            assert_same(make, data, evaluates=True)


@compiles_long
@pytest.mark.parametrize("dtype", ["int64", "float64", "bool"])
def test_weights_of_any_kind_of_number(dtype):
    data = (noise(10, 4), noise(10, 3), weights(10, dtype=dtype))
    assert_same(lambda: dense(weighted_metrics=["mae"]), data)


@compiles_long
def test_a_micro_batch_in_which_all_weights_are_zero():
    given = weights(10)
    given[SECOND] = 0.0
    loss = keras.losses.MeanSquaredError("mean_with_sample_weight")
    assert_same(lambda: dense(loss, weighted_metrics=["mae"]), (noise(10, 4), noise(10, 3), given))


@compiles_long
def test_a_batch_of_one_row():
    assert_same(lambda: dense(metrics=["mae"]), (noise(1, 4), noise(1, 3)))


@compiles_long
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision(policy):
    keras.config.set_dtype_policy(policy)
    try:
        data = (noise(10, 4), noise(10, 3))
        (whole, _), (micro_batches, _) = (run(dense, data, size) for size in (None, 3))
    finally:
        keras.config.set_dtype_policy("float32")
    assert difference(micro_batches, whole) <= 1e-3


def test_a_model_that_is_compiled_again_is_told_as_it_is_compiled_now():
    x, y = noise(10, 4), noise(10, 3)

    def train(size):
        keras.utils.set_random_seed(1)
        model = dense("mse")
        if size:
            split(model, size)
        model.fit(x, y, batch_size=10, verbose=0)
        compiled(model, "mae", metrics=[largest_mean])
        history = model.fit(x, y, batch_size=10, verbose=0).history
        return values(model), {name: figures[-1] for name, figures in history.items()}

    whole, micro_batches = train(None), train(3)

    assert micro_batches[1] == pytest.approx(whole[1], rel=1e-5)
    assert difference(micro_batches[0], whole[0]) <= 1e-5


def with_context():
    rows, context = keras.Input((4,), name="rows"), keras.Input((4,), name="context")
    x = layers.Dense(3)(rows) + ops.mean(layers.Dense(3)(context), axis=0, keepdims=True)
    return compiled(keras.Model({"rows": rows, "context": context}, x), "mse")


def test_arrays_with_other_rows_are_refused_with_their_shapes():
    model = with_context()
    split(model, 4)
    before = [value.copy() for value in values(model)]

    with pytest.raises(UsageError, match=r"inputs\['context'\] \(8, 4\).*targets \(12, 3\)"):
        model.train_on_batch({"rows": noise(12, 4), "context": noise(8, 4)}, noise(12, 3))

    assert difference(values(model)[:4], before[:4]) == 0


@pytest.mark.skipif(BACKEND != "tensorflow", reason="others know the shapes of a batch")
def test_arrays_with_other_rows_are_refused_where_a_graph_does_not_know_them():
    import tensorflow as tf

    model = compiled(with_context(), "mse", run_eagerly=False)
    split(model, 4)
    spec = [tf.TensorSpec((None, size), tf.float32) for size in (4, 4, 3)]

    def batches():
        yield {"rows": noise(12, 4), "context": noise(8, 4)}, noise(12, 3)

    data = tf.data.Dataset.from_generator(
        batches, output_signature=({"rows": spec[0], "context": spec[1]}, spec[2])
    )
    before = [value.copy() for value in values(model)[:4]]

    with pytest.raises(UsageError, match="one row for each sample"):
        model.fit(data, verbose=0)

    assert difference(values(model)[:4], before) == 0
