"""Images stay in the file; a generator reads each batch from it."""

from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

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
images = np.load(DATA / "images.npy", mmap_mode="r")
digits = np.load(DATA / "digits.npy", mmap_mode="r")


def read_batches():
    for begin in 32 * np.random.permutation(len(images) // 32):
        yield np.array(images[begin : begin + 32]), np.array(digits[begin : begin + 32])


batches = tf.data.Dataset.from_generator(
    read_batches,
    output_signature=(tf.TensorSpec((32, 784)), tf.TensorSpec((32,), tf.int64)),
)
for _ in range(2):
    losses = [float(train_step(*batch)) for batch in batches]
print("final loss", np.mean(losses))
