"""Regression on a table that lies on disk."""

import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

ROWS, COLUMNS = 240_000, 256
path = os.path.join(tempfile.mkdtemp(), "table.npy")
with open(path, "wb") as table:
    for start in range(0, ROWS, 10_000):
        block = np.random.default_rng(start).random((10_000, COLUMNS))
        table.write(block.astype("float32").tobytes())


def decode(records):
    features = tf.io.decode_raw(records, tf.float32)
    features = tf.ensure_shape(features, (256, COLUMNS))
    return features, features[:, :1]


dataset = tf.data.FixedLengthRecordDataset(path, COLUMNS * 4)
dataset = dataset.batch(256, drop_remainder=True).map(decode).repeat()

model = keras.Sequential([keras.layers.Dense(192, activation="relu"), keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
model.fit(dataset, epochs=12, steps_per_epoch=600, verbose=2)
os.remove(path)
