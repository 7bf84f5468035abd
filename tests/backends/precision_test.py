"""Half precision: what is lowered, what stays, and that all of it is undone.

Run by tests/backends/test_each_backend.py, once for each backend.
"""

import sys

import keras
import numpy as np
import pytest
from keras import layers, ops

from memfit.errors import UsageError
from memfit.fitting.levers.precision import reduce_precision

BACKEND = keras.backend.backend()
X = np.random.default_rng(0).normal(size=(64, 8)).astype("float32")
Y = (X.sum(1, keepdims=True) > 0).astype("float32")


@pytest.fixture(autouse=True)
def _seed():
    keras.utils.set_random_seed(1)


def compute(model):
    return {one.name: one.compute_dtype for one in model._flatten_layers()}


def train(model, epochs=1):
    return model.fit(X, Y, epochs=epochs, batch_size=16, verbose=0).history["loss"]


def build():
    inputs = keras.Input((8,))
    hidden = layers.Normalization(mean=0.0, variance=1.0, name="scaled")(inputs)
    hidden = layers.Dense(16, activation="relu", name="first")(hidden)
    inner = [keras.Input((16,)), layers.Dense(16, activation="relu", name="inner")]
    hidden = keras.Sequential([*inner, layers.BatchNormalization(name="norm")])(hidden)
    hidden = layers.Dense(16, dtype="float32", name="pinned")(hidden)
    cells = layers.SimpleRNN(8, recurrent_initializer="glorot_uniform", name="cells")
    recurrent = layers.Bidirectional(cells, name="both")
    hidden = recurrent(layers.Reshape((2, 8))(hidden))
    outputs = ops.sigmoid(layers.Dense(1, name="last")(hidden))  # the nearest layer counts
    model = keras.Model(inputs, outputs)
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss="binary_crossentropy")
    return model


def first_output(model):
    return keras.Model(model.inputs, model.get_layer("first").output)(X)


def size_bytes(tensor):
    bits = keras.backend.standardize_dtype(tensor.dtype).lstrip("bfloat")
    return int(np.prod(tensor.shape)) * int(bits) // 8


def saved_bytes(model):
    torch, saved = sys.modules["torch"], {}
    weights = {v.value.data_ptr() for v in model.variables}

    def keep(tensor):
        if tensor.is_floating_point() and tensor.data_ptr() not in weights:
            saved[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model(X, training=True)
    return sum(saved.values())


def test_a_training_is_lowered_goes_on_is_saved_and_undone(tmp_path):
    path = tmp_path / "model.keras"
    model = build()
    train(model)
    before = compute(model)
    moments = [np.asarray(ops.convert_to_numpy(v)) for v in model.optimizer.variables]
    plain = first_output(model)

    change = reduce_precision(model, "mixed_float16")

    now = compute(model)
    half = ("first", "inner", "norm", "both", "forward_cells")
    assert {now[name] for name in half} == {"float16"}
    assert {now[name] for name in ("scaled", "pinned", "last")} == {"float32"}
    assert "5 layers compute in float16: activations take half the bytes" in str(change)
    assert "(160 B instead of 320 B a sample in their outputs)" in str(change)
    copied = "weights stay in float32 and are copied in float16 for each step, results change"
    assert copied in str(change)
    assert "float32 for the outputs: last; float32 as set by you: pinned" in str(change)
    lowered = first_output(model)
    assert keras.backend.standardize_dtype(lowered.dtype) == "float16"
    assert 2 * size_bytes(lowered) == size_bytes(plain)
    assert {v.dtype for v in model.weights} == {"float32"}
    kept = [np.asarray(ops.convert_to_numpy(v)) for v in model.optimizer.variables]
    own = len(kept) - len(moments)
    assert own > 0
    assert all(np.array_equal(a, b) for a, b in zip(moments, kept[own:], strict=True))
    assert type(model.optimizer).__name__ == "LossScaleOptimizer"
    losses = train(model, 5)
    assert losses[-1] < losses[0]
    assert np.isfinite(losses).all()
    assert int(model.optimizer.iterations) == 4 * 6
    predicted = model.predict(X, verbose=0)
    assert predicted.dtype == "float32"

    model.save(path)
    loaded = keras.saving.load_model(path)
    assert compute(loaded)["first"] == "float16"
    assert int(loaded.optimizer.iterations) == 4 * 6
    assert np.array_equal(loaded.predict(X, verbose=0), predicted)
    change.undo()
    assert compute(model) == before
    assert type(model.optimizer).__name__ == "Adam"
    assert keras.backend.standardize_dtype(first_output(model).dtype) == "float32"
    assert train(model)[0] < losses[0]
    assert int(model.optimizer.iterations) == 4 * 7
    change.undo()
    model.save(path)
    assert compute(keras.saving.load_model(path))["first"] == "float32"


class Block(layers.Layer):
    def __init__(self):
        super().__init__()
        self.attention = layers.MultiHeadAttention(2, 4, kernel_initializer="ones")
        self.gate = layers.Dense(8, activation="relu")

    def call(self, value):
        return self.gate(value + self.attention(value, value))


class Classifier(keras.Model):
    def __init__(self):
        super().__init__()
        self.words = layers.Embedding(50, 8)
        self.block = Block()
        self.pool = layers.GlobalAveragePooling1D()
        self.head = keras.Sequential([layers.Dense(8), layers.Dense(3, activation="softmax")])

    def call(self, tokens):
        return self.head(self.pool(self.block(self.words(tokens))))


def test_a_model_without_a_known_graph_with_layers_inside_layers():
    tokens = np.random.default_rng(0).integers(0, 50, (64, 6))
    labels = tokens[:, 0] % 3
    model = Classifier()
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
    plain = ops.convert_to_numpy(model(tokens))

    change = reduce_precision(model, "mixed_bfloat16")

    assert type(model.optimizer).__name__ == "Adam"
    assert {one.compute_dtype for one in model.block._flatten_layers()} == {"bfloat16"}
    assert model.words.compute_dtype == model.head.layers[0].compute_dtype == "bfloat16"
    assert model.head.layers[1].compute_dtype == "float32"
    lowered = ops.convert_to_numpy(model(tokens))
    assert lowered.dtype == "float32"
    assert np.allclose(lowered.sum(1), 1, atol=1e-5)
    assert not np.array_equal(plain, lowered)
    assert np.allclose(plain, lowered, atol=0.02)
    losses = model.fit(tokens, labels, batch_size=64, epochs=4, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    change.undo()
    assert {one.compute_dtype for one in model._flatten_layers()} == {"float32"}


class Plain(keras.optimizers.SGD):
    """Starts anew when it is built twice."""

    def build(self, variables):
        self.built = False
        super().build(variables)


def two_layers():
    parts = [keras.Input((8,)), layers.Dense(8, "relu"), layers.Dense(1, "sigmoid")]
    return keras.Sequential(parts)


def test_an_optimizer_keeps_its_state_and_one_that_is_compiled_in_between_is_keras_own():
    model = two_layers()
    model.compile(optimizer=Plain(0.1, momentum=0.9), loss="binary_crossentropy")
    train(model)
    momentum = ops.convert_to_numpy(model.optimizer.momentums[0])

    with reduce_precision(model, "mixed_float16"):
        inner = model.optimizer.inner_optimizer
        assert np.array_equal(ops.convert_to_numpy(inner.momentums[0]), momentum)
        train(model)
        model.compile(optimizer="sgd", loss="mse")
        assert type(model.optimizer).__name__ == "LossScaleOptimizer"


def test_wrong_arguments_are_refused():
    with pytest.raises(UsageError, match="Received: "):
        reduce_precision(two_layers(), "float16")
    with pytest.raises(UsageError, match="Received: "):
        reduce_precision(3)


def test_where_nothing_is_in_float32_nothing_is_lowered():
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        mixed = keras.Sequential([keras.Input((8,)), layers.Dense(4), layers.Dense(1)])
        assert str(reduce_precision(mixed)).startswith("no layer computes in float32")
    finally:
        keras.config.set_dtype_policy("float32")


def test_a_clone_of_which_nobody_can_tell_which_layers_were_set_is_lowered():
    copy = keras.models.clone_model(build())

    assert "7 layers" not in str(reduce_precision(copy))
    assert compute(copy)["pinned"] == "bfloat16"


def test_without_a_known_shape_no_bytes_are_named():
    model = keras.Sequential([keras.Input((None, 8)), layers.Dense(4), layers.Dense(1)])

    assert "half the bytes, weights" in str(reduce_precision(model))


@pytest.mark.skipif(BACKEND != "torch", reason="torch tells what it saves for gradients")
def test_what_is_saved_for_gradients_is_half():
    stack = [layers.Dense(256, "gelu") for _ in range(6)]
    model = keras.Sequential([keras.Input((8,)), *stack, layers.Dense(1)])
    full_bytes = saved_bytes(model)

    reduce_precision(model)

    # Half, and the weights once more in half precision: a batch of 64 is small against them.
    weights_bytes = sum(2 * int(np.prod(v.shape)) for v in model.weights)
    assert saved_bytes(model) - weights_bytes < 0.6 * full_bytes
