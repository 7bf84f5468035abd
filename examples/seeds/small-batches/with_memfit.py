"""Images stay in the file; the loop takes batches from a stream, shuffled row by row."""

from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import memfit

DATA = Path(__file__).parents[1] / "data"


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        loss = loss_fn(labels, model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


keras.utils.set_random_seed(0)
model = keras.Sequential(
    [
        keras.Input((784,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
optimizer = keras.optimizers.Adam()
loss_fn = keras.losses.SparseCategoricalCrossentropy()
batches = memfit.stream(
    (DATA / "images.npy", DATA / "digits.npy"), batch_size=32, shuffle=True, budget="32MB"
).to_tf()
for _ in range(2):
    losses = [float(train_step(*batch)) for batch in batches]
print("final loss", np.mean(losses))
