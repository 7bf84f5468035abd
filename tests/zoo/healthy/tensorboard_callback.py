"""Log scalars and weight histograms for TensorBoard."""

import tempfile

import keras
import numpy as np

x = np.random.default_rng(0).normal(size=(2000, 100)).astype("float32")
y = (x.sum(axis=1) > 0).astype("float32")
model = keras.Sequential(
    [
        keras.layers.Dense(128, activation="relu"),
        keras.layers.Dense(128, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
with tempfile.TemporaryDirectory() as logs:
    board = keras.callbacks.TensorBoard(logs, histogram_freq=1, write_graph=False)
    model.fit(x, y, validation_split=0.2, epochs=40, verbose=2, callbacks=[board])
