"""Step through the model in Python while it trains."""

import keras
import numpy as np


def batches():
    rng = np.random.default_rng(0)
    while True:
        x = rng.normal(size=(64, 128)).astype("float32")
        yield x, np.abs(x[:, :1])


model = keras.Sequential(
    [
        keras.layers.Dense(128, activation="relu"),
        keras.layers.LayerNormalization(),
        keras.layers.Dense(128, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile(optimizer="adam", loss="mae", metrics=["mse"], run_eagerly=True)
model.fit(batches(), steps_per_epoch=25, epochs=16, verbose=2)
