"""
Title: Writing a training loop from scratch in JAX
Description: The loop of the Keras guide, shortened.
"""

import os

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
import numpy as np

model = keras.Sequential(
    [
        keras.Input((784,)),
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dense(10),
    ]
)
optimizer = keras.optimizers.Adam(1e-3)
optimizer.build(model.trainable_variables)
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def compute_loss(trainable, non_trainable, x, y):
    logits, non_trainable = model.stateless_call(trainable, non_trainable, x, training=True)
    return loss_fn(y, logits), non_trainable


grad_fn = jax.value_and_grad(compute_loss, has_aux=True)


@jax.jit
def train_step(state, x, y):
    trainable, non_trainable, slots = state
    (loss, non_trainable), grads = grad_fn(trainable, non_trainable, x, y)
    trainable, slots = optimizer.stateless_apply(slots, grads, trainable)
    return loss, (trainable, non_trainable, slots)


state = (
    [v.value for v in model.trainable_variables],
    [v.value for v in model.non_trainable_variables],
    [v.value for v in optimizer.variables],
)
rng = np.random.default_rng(0)
losses = []
for epoch in range(25):
    for _ in range(180):
        x = rng.random((128, 784), dtype="float32")
        loss, state = train_step(state, x, rng.integers(0, 10, 128))
    losses.append(float(loss))
    print(f"epoch {epoch} loss {losses[-1]:.4f}")
