"""Simulated batches from worker threads, on JAX."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import tempfile

import keras
import numpy as np


class Simulation(keras.utils.PyDataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        x = rng.normal(size=(128, 64)).astype("float32")
        return x, np.sin(x[:, :1])


model = keras.Sequential(
    [
        keras.layers.Dense(256, activation="swish"),
        keras.layers.BatchNormalization(),
        keras.layers.Dense(256, activation="swish"),
        keras.layers.Dense(1),
    ]
)
model.compile(optimizer="adam", loss="mse")
with tempfile.TemporaryDirectory() as folder:
    callbacks = [
        keras.callbacks.ModelCheckpoint(os.path.join(folder, "m.keras"), monitor="loss"),
        keras.callbacks.EarlyStopping(monitor="loss", patience=50, restore_best_weights=True),
    ]
    model.fit(Simulation(workers=2, max_queue_size=8), epochs=25, verbose=2, callbacks=callbacks)
