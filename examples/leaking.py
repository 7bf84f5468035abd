"""A training whose memory grows: a callback keeps the predictions of every epoch."""

import keras
import numpy as np


class PredictionLogger(keras.callbacks.Callback):
    def __init__(self, x):
        super().__init__()
        self.x = x
        self.outputs = []

    def on_epoch_end(self, epoch, logs=None):
        self.outputs.append(self.model.predict(self.x, verbose=0))


rng = np.random.default_rng(0)
x = rng.random((20_000, 32), dtype="float32")
y = x @ rng.random((32, 100), dtype="float32")
model = keras.Sequential([keras.layers.Dense(128, activation="relu"), keras.layers.Dense(100)])
model.compile("adam", "mse")
model.fit(x, y, batch_size=128, epochs=15, verbose=2, callbacks=[PredictionLogger(x)])
