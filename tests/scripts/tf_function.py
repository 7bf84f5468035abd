"""`tf.function` in every way people use it."""

import tempfile

import tensorflow as tf


@tf.function
def inner(x):
    "Doc of inner."
    if tf.reduce_sum(x) > 0:  # needs AutoGraph
        return x * 2
    return x - 1


@tf.function
def outer(x):
    total = tf.zeros_like(x)
    for _ in tf.range(3):
        total += inner(x)
    return total


assert outer(tf.constant(1.0)) == 6.0
assert inner(tf.constant(-1.0)) == -2.0
assert inner.experimental_get_tracing_count() == 1
assert inner.__doc__ == "Doc of inner."
assert inner.get_concrete_function(tf.constant(1.0))(tf.constant(2.0)) == 4.0


class Scaler(tf.Module):
    def __init__(self):
        self.scale = tf.Variable(4.0)

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def __call__(self, x):
        return self.scale * x


assert Scaler()(tf.constant(2.0)) == 8.0
with tempfile.TemporaryDirectory() as folder:
    tf.saved_model.save(Scaler(), folder)
    assert tf.saved_model.load(folder)(tf.constant(3.0)) == 12.0
assert list(tf.data.Dataset.range(3).map(inner).as_numpy_iterator()) == [-1, 2, 4]
jitted = tf.function(lambda x: x + 1, jit_compile=True)
assert jitted(tf.constant(1.0)) == 2.0
with tf.GradientTape() as tape:
    x = tf.Variable(3.0)
    loss = inner(x)
assert tape.gradient(loss, x) == 2.0
try:
    tf.function(lambda: undefined_name)()  # noqa: F821  # as a user mistypes
except NameError as error:
    print("error", type(error).__name__)
