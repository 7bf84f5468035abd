"""Regression on a table that lies on disk."""

import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

ROWS, COLUMNS = 240_000, 256
path = os.path.join(tempfile.mkdtemp(), "table.npy")
table = np.lib.format.open_memmap(path, "w+", "float32", (ROWS, COLUMNS))
for start in range(0, ROWS, 10_000):
    table[start : start + 10_000] = np.random.default_rng(start).random((10_000, COLUMNS))
del table

features = np.load(path)
dataset = tf.data.Dataset.from_tensor_slices((features, features[:, :1]))
dataset = dataset.batch(256).repeat()

model = keras.Sequential([keras.layers.Dense(192, activation="relu"), keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
model.fit(dataset, epochs=12, steps_per_epoch=600, verbose=2)
os.remove(path)
