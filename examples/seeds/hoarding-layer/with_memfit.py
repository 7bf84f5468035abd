"""The layer with what the finding advises: a bound on what it keeps."""

import collections

import keras
import numpy as np


class Recentred(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.seen = collections.deque(maxlen=10)

    def call(self, rows, training=False):
        if training:
            self.seen.append(rows)
        return rows - keras.ops.mean(rows, axis=0)


keras.utils.set_random_seed(0)
x = np.random.rand(20_000, 100).astype("float32")
y = np.random.randint(0, 10, 20_000)
model = keras.Sequential(
    [
        keras.Input((100,)),
        Recentred(),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", run_eagerly=True)
history = model.fit(x, y, batch_size=400, epochs=10, verbose=0)
print("final loss", history.history["loss"][-1])
