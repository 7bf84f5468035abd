"""Trains models with and without recomputation.

`recomputed.py` compares everything and prints `good`; `recomputed.py more` repeats it in ways that
take long to compile; `recomputed.py peak WAY` prints the bytes of a step, with the way `kept` or
`recomputed`: a process each, as one keeps what it once took.
"""

import os
import sys
import tempfile
from pathlib import Path

import keras
import numpy as np
from keras.src.random.seed_generator import global_seed_generator

import memfit
from memfit.fitting.levers.recompute import recompute

BACKEND = keras.backend.backend()
L = keras.layers
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(48, 16)).astype("float32")
Y = X[:, :1] * 2
TOKENS = RANDOM.integers(0, 9, size=(48, 6))


class InnerDropout(L.Layer):
    """Is not told whether it trains: Keras tells the layer inside."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dropout = L.Dropout(0.4)
        self.dense = L.Dense(16)

    def build(self, shape):
        self.dense.build(shape)
        self.built = True

    def call(self, x):
        y = self.dropout(x)
        self.add_loss(1e-3 * keras.ops.mean(keras.ops.square(y)))
        return keras.ops.tanh(self.dense(y))


class Masked(L.Layer):
    """Computes something else where there is no mask."""

    supports_masking = True

    def call(self, x, mask=None):
        if mask is None:
            return x * 100
        return x * keras.ops.cast(mask, x.dtype)[:, :, None]


def residual():
    inputs = keras.Input((16,))
    x = L.Dense(32, activation="gelu", kernel_regularizer=keras.regularizers.L2(1e-3))(inputs)
    for _ in range(3):
        y = L.BatchNormalization()(x)
        y = L.Dense(64, activation="relu", activity_regularizer=keras.regularizers.L2(1e-4))(y)
        y = L.Dropout(0.3)(y)
        x = L.Add()([x, L.Dense(32)(y)])
    return keras.Model(inputs, L.Dense(1)(x))


def sequential():
    layers = []
    for _ in range(6):
        layers += [L.Dense(32, activation="tanh"), L.Dropout(0.2)]
    return keras.Sequential([keras.Input((16,)), *layers, L.Dense(1)])


def skips():
    """Long connections, layers shared and frozen, a model inside, two outputs, an operation."""
    inputs = keras.Input((16,))
    shared = L.Dense(16, activation="relu")
    frozen = L.BatchNormalization()
    inner_in = keras.Input((16,))
    inner_out = L.BatchNormalization()(L.Dropout(0.2)(L.Dense(16)(inner_in)))
    inner = keras.Model(inner_in, inner_out)
    first = shared(inputs)
    x = InnerDropout()(first)
    second = inner(shared(x))
    x = frozen(keras.ops.sin(second))
    x = inner(InnerDropout()(x))
    x = L.Concatenate()([L.Dense(16)(x), second])
    x = L.Concatenate()([L.Dense(16)(x), first])
    out = L.Dense(1)(InnerDropout()(L.Dense(16)(x)))
    frozen.trainable = False
    return keras.Model(inputs, [out, L.Dense(1)(second)])


def masked():
    inputs = keras.Input((6,), dtype="int32")
    x = L.Embedding(9, 16, mask_zero=True)(inputs)
    for _ in range(4):
        x = L.Add()([x, L.Dense(16)(L.Dropout(0.2)(Masked()(L.LayerNormalization()(x))))])
    return keras.Model(inputs, L.Dense(1)(L.GlobalAveragePooling1D()(x)))


def built(build):
    keras.utils.set_random_seed(3)
    return build()


def trained(model, x, batches):
    """Trains on some batches; returns the loss and all variables."""
    count = 16 * batches
    if BACKEND == "torch":  # Dropout without a seed takes torch's own numbers
        keras.utils.set_random_seed(5)
    global_seed_generator().state.assign([7, 0])
    y = [Y[:count]] * len(model.outputs) if len(model.outputs) > 1 else Y[:count]
    history = model.fit(x[:count], y, batch_size=16, shuffle=False, verbose=0)
    return history.history["loss"], [keras.ops.convert_to_numpy(one) for one in model.variables]


def compare(build, x, precision=1e-6, smallest=0.01, **how):
    """One update shows the gradients, some more that state goes on from where it was."""
    model, recomputed = built(build), built(build)
    assert "blocks are recomputed" in str(recompute(recomputed, batch_size=16))
    for one in (model, recomputed):
        one.compile(keras.optimizers.SGD(0.01), "mse", **how)
    for batches, factor in ((1, 1), (3, 10)):
        losses, values = trained(model, x, batches)
        losses_again, values_again = trained(recomputed, x, batches)
        assert np.isfinite(losses).all()
        np.testing.assert_allclose(losses_again, losses, rtol=factor * precision)
        for one, again in zip(values, values_again, strict=True):
            assert_close(one, again, factor * precision, smallest)


def assert_close(one, again, precision, smallest):
    """Seeds are the same; weights and statistics differ by less than an update's rounding."""
    if np.issubdtype(one.dtype, np.integer):
        np.testing.assert_array_equal(again, one)
    else:
        assert np.abs(again - one).max() <= precision * max(np.abs(one).max(), smallest)


def check_values():
    """On TensorFlow, where tracing takes most of the time, one model is compiled at first."""
    is_all_compiled = "MEMFIT_TESTS_COMPILE" in os.environ
    is_eager = BACKEND == "tensorflow" and not is_all_compiled
    compare(residual, X)
    for build, x in ((skips, X), (masked, TOKENS)):
        compare(build, x, run_eagerly=is_eager)
    if is_all_compiled:
        compare(residual, X, run_eagerly=True)


def check_more():
    compare(sequential, X)
    if BACKEND == "tensorflow":
        compare(skips, X, jit_compile=True)
    keras.config.set_dtype_policy("mixed_bfloat16")
    compare(sequential, X, precision=0.005, smallest=1)  # XLA rounds where it likes
    keras.config.set_dtype_policy("float32")


def check_random_without_seed():
    """Each draws from the one state that all share, and moves it once."""

    def build():
        layers = []
        for _ in range(4):
            layers += [L.Dense(16), L.Lambda(lambda x: keras.random.dropout(x, 0.5))]
        return keras.Sequential([keras.Input((16,)), *layers, L.Dense(1)])

    compare(build, X)


def check_loop():
    """Micro-batches in a loop, each with its gradient, as the lever for batches does."""
    import tensorflow as tf

    def gradients(model):
        @tf.function
        def run(x):
            def body(i, *sums):
                with tf.GradientTape() as tape:
                    made = model(x[i * 4 : i * 4 + 4], training=True)
                    loss = tf.reduce_mean(made**2) + tf.add_n(model.losses)
                found = tape.gradient(loss, [one.value for one in model.trainable_variables])
                return (i + 1, *(a + b for a, b in zip(sums, found, strict=True)))

            zeros = [tf.zeros_like(one.value) for one in model.trainable_variables]
            return tf.while_loop(lambda i, *_: i < 4, body, (0, *zeros), parallel_iterations=1)[1:]

        return run(X[:16])

    model = built(residual)
    recompute(model, batch_size=4)
    for one, again in zip(gradients(built(residual)), gradients(model), strict=True):
        np.testing.assert_allclose(again, one, atol=1e-5 * max(1, np.abs(one).max()))


def check_around(path):
    model = built(residual)
    before = model.predict(X, verbose=0)
    config = model.get_config()
    change = recompute(model, batch_size=16)
    model.compile("sgd", "mse")
    model.fit(X, Y, verbose=0)
    train_function = model.train_function
    np.testing.assert_allclose(built(residual).predict(X, verbose=0), before, rtol=1e-6)
    assert model.get_config() == config
    model.summary(print_fn=lambda *_, **__: None)
    model.evaluate(X, Y, verbose=0)
    now = model.predict(X, verbose=0)
    model.save(path)
    loaded = keras.models.load_model(path)
    assert "call" not in vars(loaded)
    np.testing.assert_allclose(loaded.predict(X, verbose=0), now, rtol=1e-5)
    refused(lambda: recompute(model), "Undo that change first")
    change.undo()
    change.undo()
    assert "call" not in vars(model)
    assert model.train_function is None
    assert train_function is not None
    model.fit(X, Y, verbose=0)
    outer_in = keras.Input((16,))
    inner = built(sequential)
    recompute(inner, batch_size=16)
    outer = keras.Model(outer_in, inner(outer_in))
    outer.compile("sgd", "mse")
    outer.fit(X, Y, verbose=0)


def check_refusals():
    class Own(keras.Model):
        def call(self, x):
            return x

    class OwnFunctional(keras.Model):
        def call(self, x, training=None):
            return super().call(x, training=training)

    inputs = keras.Input((16,))
    refused(lambda: recompute(Own()), "has no graph to cut")
    refused(lambda: recompute(OwnFunctional(inputs, L.Dense(1)(inputs))), "call() written in Own")
    refused(lambda: recompute(keras.Sequential([L.Dense(1)])), "model.build(input_shape)")
    refused(lambda: recompute(keras.Model(inputs, L.Dense(1)(inputs))), "at most about 0 B")
    refused(lambda: recompute(residual(), 10**9), "1.00 GB were requested")
    refused(lambda: recompute(residual(), 0), "bytes_to_save=0")
    refused(lambda: recompute(L.Dense(1)), "Received: model=<Dense")


def refused(function, words):
    try:
        function()
    except memfit.UsageError as error:
        message = str(error)
    else:
        message = "nothing was refused"
    assert words in message, message


def check_less():
    """A small need is met by fewer blocks."""
    whole = str(recompute(built(sequential), batch_size=16))
    some = str(recompute(built(sequential), 1000, batch_size=16))
    assert int(some.split()[0]) < int(whole.split()[0]), (some, whole)


def peak_bytes(*, is_recomputed):
    """Returns what a step takes with six layers of which each keeps some 30 MB."""
    hidden = inputs = keras.Input((32, 64))
    for _ in range(6):
        # On torch it leaves garbage cycles that hold its tensors.
        hidden = L.Add()([hidden, L.MultiHeadAttention(4, 16)(hidden, hidden)])
    model = keras.Model(inputs, L.Dense(1)(L.GlobalAveragePooling1D()(hidden)))
    x = np.random.default_rng(0).random((384, 32, 64), "float32")
    if is_recomputed:
        recompute(model, batch_size=len(x))
    if BACKEND == "jax":
        return compiled_bytes(model, x)
    model.compile("sgd", "mse")
    model.train_on_batch(x[:8], x[:8, 0, :1])
    Path("/proc/self/clear_refs").write_text("5")
    before = read_status("VmRSS")
    model.train_on_batch(x, x[:, 0, :1])
    return read_status("VmHWM") - before


def compiled_bytes(model, x):
    import jax

    def loss(trainable, others):
        return model.stateless_call(trainable, others, x, training=True)[0].mean()

    values = [
        [one.value for one in variables]
        for variables in (model.trainable_variables, model.non_trainable_variables)
    ]
    compiled = jax.jit(jax.grad(loss)).lower(*values).compile()
    return compiled.memory_analysis().temp_size_in_bytes


def read_status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def check_all(path):
    check_values()
    if BACKEND != "jax":
        check_random_without_seed()
    if BACKEND == "tensorflow":
        check_loop()
    check_around(path)
    check_refusals()
    check_less()
    print("good")


if __name__ == "__main__":
    if sys.argv[1:2] == ["peak"]:
        print(peak_bytes(is_recomputed=sys.argv[2] == "recomputed"))
    elif sys.argv[1:] == ["more"]:
        check_more()
        print("good")
    else:
        with tempfile.TemporaryDirectory() as folder:
            check_all(f"{folder}/model.keras")
