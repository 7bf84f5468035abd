"""Forecast a seasonal series with a GRU on JAX."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np

series = np.sin(np.arange(3000) / 20) + 0.1 * np.random.default_rng(0).normal(size=3000)
windows = np.lib.stride_tricks.sliding_window_view(series, 25).astype("float32")
x, y = windows[:, :-1, None], windows[:, -1:]
model = keras.Sequential([keras.Input((24, 1)), keras.layers.GRU(48), keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="huber")
model.fit(
    x[:2500], y[:2500], epochs=75, batch_size=64, validation_data=(x[2500:], y[2500:]), verbose=2
)
