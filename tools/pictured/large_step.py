"""Small steps, one large step, small steps again, and then the model is gone."""

import gc
import time

import keras
import numpy as np

layers = keras.layers
x = np.random.default_rng(0).random((6144, 128, 8), dtype="float32")
y = x.sum(axis=2, keepdims=True)
hidden = [layers.Dense(64, activation="relu") for _ in range(4)]
model = keras.Sequential([keras.Input((128, 8)), *hidden, layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x[:2048], y[:2048], batch_size=64, epochs=4, verbose=0)
model.fit(x, y, batch_size=6144, epochs=3, verbose=0)
model.fit(x[:2048], y[:2048], batch_size=64, epochs=6, verbose=0)
del model, hidden
gc.collect()
time.sleep(2)
