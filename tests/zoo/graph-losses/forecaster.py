"""Model and data."""

import keras
import numpy as np


def build_forecaster(lags):
    """Return a model from lags to the next value."""
    return keras.Sequential(
        [
            keras.Input((lags,)),
            keras.layers.Dense(768, activation="relu"),
            keras.layers.Dense(768, activation="relu"),
            keras.layers.Dense(1),
        ]
    )


def make_series(length=20_000):
    """Return a noisy seasonal series."""
    time = np.arange(length)
    noise = np.random.default_rng(0).normal(scale=0.1, size=length)
    return (np.sin(time / 24) + noise).astype("float32")
