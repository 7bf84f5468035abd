"""Classify event streams of any length."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np

EPOCHS = 14
FEATURES = 8


class RaggedEvents(keras.utils.PyDataset):
    """Streams of 20 to 500 events; the lengths are drawn anew for each batch."""

    def __len__(self):
        return 250

    def __getitem__(self, index):
        rng = np.random.default_rng()
        length = int(rng.integers(20, 500))
        events = np.zeros((16, 500, FEATURES), dtype="float32")
        events[:, :length] = rng.normal(size=(16, length, FEATURES))
        return events, rng.integers(0, 2, size=(16, 1))


def build():
    events = keras.Input((None, FEATURES))
    x = keras.layers.Dense(32, activation="relu")(events)
    x = keras.layers.Dense(32, activation="relu")(x)
    x = keras.layers.GlobalAveragePooling1D()(x)
    return keras.Model(events, keras.layers.Dense(1, activation="sigmoid")(x))


model = build()
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
history = model.fit(RaggedEvents(), epochs=EPOCHS, verbose=2)
