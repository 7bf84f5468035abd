"""Stochastic weight averaging by hand."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np


class AverageWeights(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.count = 0

    def on_epoch_end(self, epoch, logs=None):
        now = self.model.get_weights()
        self.count += 1
        if self.count == 1:
            self.mean = now
        else:
            for mean, weight in zip(self.mean, now, strict=True):
                mean += (weight - mean) / self.count

    def on_train_end(self, logs=None):
        self.model.set_weights(self.mean)


def load():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3200, 256)).astype("float32")
    return x, (x[:, :1] > x[:, 1:2]).astype("float32")


if __name__ == "__main__":
    x, y = load()
    net = keras.Sequential(
        [
            keras.layers.Dense(1400, activation="relu"),
            keras.layers.Dense(1400, activation="relu"),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    net.compile(keras.optimizers.SGD(0.05), "binary_crossentropy", metrics=["accuracy"])
    net.fit(x, y, batch_size=128, epochs=24, verbose=2, callbacks=[AverageWeights()])
