"""Half precision on every backend: what is lowered, what stays, and that all of it is undone."""

import os
import subprocess
import sys

import pytest

from conftest import BACKENDS, QUIET, two_at_a_time

CHECKS = """
import sys, warnings
import keras, numpy as np
from keras import layers, ops
from memfit.fitting.levers.precision import reduce_precision
from memfit.errors import UsageError

keras.utils.set_random_seed(1)
x = np.random.default_rng(0).normal(size=(64, 8)).astype("float32")
y = (x.sum(1, keepdims=True) > 0).astype("float32")
backend = keras.backend.backend()

def compute(model):
    return {one.name: one.compute_dtype for one in model._flatten_layers()}

def train(model, epochs=1):
    return model.fit(x, y, epochs=epochs, batch_size=16, verbose=0).history["loss"]

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
    return keras.Model(model.inputs, model.get_layer("first").output)(x)

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
        model(x, training=True)
    return sum(saved.values())

model = build()
train(model)
before = compute(model)
moments = [np.asarray(ops.convert_to_numpy(v)) for v in model.optimizer.variables]
plain = first_output(model)

change = reduce_precision(model, "mixed_float16")

now = compute(model)
half = ("first", "inner", "norm", "both", "forward_cells")
assert {now[name] for name in half} == {"float16"}, now
assert {now[name] for name in ("scaled", "pinned", "last")} == {"float32"}, now
assert "5 layers compute in float16: activations take half the bytes" in str(change), change
assert "(160 B instead of 320 B a sample in their outputs)" in str(change), change
copied = "weights stay in float32 and are copied in float16 for each step, results change"
assert copied in str(change), change
assert "float32 for the outputs: last; float32 as set by you: pinned" in str(change)
lowered = first_output(model)
assert keras.backend.standardize_dtype(lowered.dtype) == "float16"
assert 2 * size_bytes(lowered) == size_bytes(plain)
assert {v.dtype for v in model.weights} == {"float32"}
kept = [np.asarray(ops.convert_to_numpy(v)) for v in model.optimizer.variables]
own = len(kept) - len(moments)
assert own > 0
assert all(np.array_equal(a, b) for a, b in zip(moments, kept[own:]))
assert type(model.optimizer).__name__ == "LossScaleOptimizer"
losses = train(model, 5)
assert losses[-1] < losses[0] and np.isfinite(losses).all(), losses
assert int(model.optimizer.iterations) == 4 * 6
predicted = model.predict(x, verbose=0)
assert predicted.dtype == "float32"

model.save("model.keras")
loaded = keras.saving.load_model("model.keras")
assert compute(loaded)["first"] == "float16"
assert int(loaded.optimizer.iterations) == 4 * 6
assert np.array_equal(loaded.predict(x, verbose=0), predicted)
change.undo()
assert compute(model) == before
assert type(model.optimizer).__name__ == "Adam"
assert keras.backend.standardize_dtype(first_output(model).dtype) == "float32"
assert train(model)[0] < losses[0]
assert int(model.optimizer.iterations) == 4 * 7
change.undo()
model.save("model.keras")
assert compute(keras.saving.load_model("model.keras"))["first"] == "float32"

# A model without a known graph, with layers inside layers.
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
assert lowered.dtype == "float32" and np.allclose(lowered.sum(1), 1, atol=1e-5)
assert not np.array_equal(plain, lowered) and np.allclose(plain, lowered, atol=0.02)
losses = model.fit(tokens, labels, batch_size=64, epochs=4, verbose=0).history["loss"]
assert losses[-1] < losses[0], losses
change.undo()
assert {one.compute_dtype for one in model._flatten_layers()} == {"float32"}

# An optimizer that starts anew when it is built twice, and one that is compiled in between.
class Plain(keras.optimizers.SGD):
    def build(self, variables):
        self.built = False
        super().build(variables)

model = keras.Sequential([keras.Input((8,)), layers.Dense(8, "relu"), layers.Dense(1, "sigmoid")])
model.compile(optimizer=Plain(0.1, momentum=0.9), loss="binary_crossentropy")
train(model)
momentum = ops.convert_to_numpy(model.optimizer.momentums[0])
with reduce_precision(model, "mixed_float16"):
    inner = model.optimizer.inner_optimizer
    assert np.array_equal(ops.convert_to_numpy(inner.momentums[0]), momentum)
    train(model)
    model.compile(optimizer="sgd", loss="mse")
    assert type(model.optimizer).__name__ == "LossScaleOptimizer"  # Keras's own
for wrong in (lambda: reduce_precision(model, "float16"), lambda: reduce_precision(3)):
    try:
        wrong()
    except UsageError as error:
        assert "Received: " in str(error)
    else:
        raise AssertionError(wrong)

# Nothing to lower; a clone, of which nobody can tell which layers were set; not compiled.
keras.config.set_dtype_policy("mixed_bfloat16")
mixed = keras.Sequential([keras.Input((8,)), layers.Dense(4), layers.Dense(1)])
assert str(reduce_precision(mixed)).startswith("no layer computes in float32")
keras.config.set_dtype_policy("float32")
copy = keras.models.clone_model(build())
assert "7 layers" not in str(reduce_precision(copy)) and compute(copy)["pinned"] == "bfloat16"
open_shape = keras.Sequential([keras.Input((None, 8)), layers.Dense(4), layers.Dense(1)])
assert "half the bytes, weights" in str(reduce_precision(open_shape))
if backend == "torch":
    stack = [layers.Dense(256, "gelu") for _ in range(6)]
    model = keras.Sequential([keras.Input((8,)), *stack, layers.Dense(1)])
    full_bytes = saved_bytes(model)
    reduce_precision(model)
    # Half, and the weights once more in half precision: a batch of 64 is small against them.
    weights_bytes = sum(2 * int(np.prod(v.shape)) for v in model.weights)
    assert saved_bytes(model) - weights_bytes < 0.6 * full_bytes
print("good")
"""


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    def check(backend):
        folder = tmp_path_factory.mktemp(backend)
        (folder / "checks.py").write_text(CHECKS)
        return subprocess.run(
            [sys.executable, "checks.py"],
            cwd=folder,
            env={**os.environ, **QUIET, "KERAS_BACKEND": backend},
            capture_output=True,
            text=True,
            check=False,
        )

    with two_at_a_time(check, BACKENDS) as jobs:
        yield jobs


@pytest.mark.parametrize("backend", BACKENDS)
def test_precision_is_reduced_as_agreed_and_undone(backend, begun):
    done = begun[backend,].result()

    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith("good\n")
