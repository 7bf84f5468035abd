"""A custom loop with no `fit`, on the backend that Keras uses; may keep what each step gives.

Arguments: seconds to run, and `keep` or `drop`.
"""

import sys
import time

import keras
import numpy as np

seconds, keeps = float(sys.argv[1]), sys.argv[2] == "keep"
rng = np.random.default_rng(0)
x = rng.random((256, 64), dtype="float32")
y = rng.random((256, 256), dtype="float32")
inputs = keras.Input((64,))
hidden = keras.layers.Dense(128, activation="relu")(inputs)
model = keras.Model(inputs, keras.layers.Dense(256)(hidden))
optimizer = keras.optimizers.SGD(0.01)
optimizer.build(model.trainable_variables)
loss_of = keras.losses.MeanSquaredError()


def make_tensorflow_step():
    import tensorflow as tf

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            outputs = model(x, training=True)
            loss = loss_of(y, outputs)
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return outputs

    return step


def make_torch_step():
    def step():
        outputs = model(x, training=True)
        model.zero_grad()
        loss_of(y, outputs).backward()
        gradients = [variable.value.grad for variable in model.trainable_variables]
        optimizer.apply(gradients, model.trainable_variables)
        return outputs.detach()

    return step


def make_jax_step():
    import jax

    @jax.jit
    def update(trainable, non_trainable, slots):
        def loss_and_outputs(values):
            outputs, state = model.stateless_call(values, non_trainable, x, training=True)
            return loss_of(y, outputs), (outputs, state)

        gradients, (outputs, state) = jax.grad(loss_and_outputs, has_aux=True)(trainable)
        trainable, slots = optimizer.stateless_apply(slots, gradients, trainable)
        return trainable, state, slots, outputs

    state = [
        [variable.value for variable in group]
        for group in (
            model.trainable_variables,
            model.non_trainable_variables,
            optimizer.variables,
        )
    ]

    def step():
        *state[:], outputs = update(*state)
        return outputs

    return step


makers = {
    "tensorflow": make_tensorflow_step,
    "torch": make_torch_step,
    "jax": make_jax_step,
}
step = makers[keras.backend.backend()]()
kept = []
until = time.monotonic() + seconds
while time.monotonic() < until:
    outputs = step()
    if keeps:
        kept.append(outputs)
    time.sleep(0.02)
