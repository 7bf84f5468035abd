"""A pipeline over numbers of batches; each is read from the file when its turn comes."""

from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

DATA = Path(__file__).parents[1] / "data"
BATCH = 32

x = np.load(DATA / "x.npy", mmap_mode="r")
y = np.load(DATA / "y.npy", mmap_mode="r")


def read(number):
    rows = slice(number * BATCH, (number + 1) * BATCH)
    return np.array(x[rows]), np.array(y[rows])


def shaped(number):
    features, labels = tf.numpy_function(read, [number], (tf.float32, tf.int64))
    return tf.ensure_shape(features, (None, 100)), tf.ensure_shape(labels, (None,))


keras.utils.set_random_seed(0)
count = -(-len(x) // BATCH)
batches = tf.data.Dataset.range(count).shuffle(count).map(shaped).prefetch(2)
model = keras.Sequential(
    [
        keras.Input((100,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
history = model.fit(batches, epochs=1, verbose=0)
print("final loss", history.history["loss"][-1])
