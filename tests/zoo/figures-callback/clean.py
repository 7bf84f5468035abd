"""Fit a noisy curve and plot every epoch."""

import gc
import tempfile
from pathlib import Path

import keras
import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt


class PlotFit(keras.callbacks.Callback):
    def __init__(self, x, y, folder):
        super().__init__()
        self.x, self.y, self.folder = x, y, Path(folder)

    def on_epoch_end(self, epoch, logs=None):
        fig, axes = plt.subplots(1, 2, figsize=(12, 6))
        guess = self.model.predict(self.x, verbose=0, batch_size=512)
        axes[0].scatter(self.x[:, 0], self.y[:, 0], s=1)
        axes[0].plot(self.x[:, 0], guess[:, 0], "r.")
        axes[1].hist(guess[:, 0] - self.y[:, 0], bins=60)
        fig.savefig(self.folder / f"{epoch:03d}.png")
        plt.close(fig)
        gc.collect()


x = np.sort(np.random.default_rng(0).uniform(-3, 3, size=(2000, 1)), axis=0)
y = np.sin(3 * x) + 0.1 * np.random.default_rng(1).normal(size=x.shape)
model = keras.Sequential(
    [
        keras.layers.Dense(64, activation="tanh"),
        keras.layers.Dense(64, activation="tanh"),
        keras.layers.Dense(1),
    ]
)
model.compile("adam", "mse")
with tempfile.TemporaryDirectory() as plots:
    model.fit(x, y, epochs=19, verbose=2, callbacks=[PlotFit(x, y, plots)])
