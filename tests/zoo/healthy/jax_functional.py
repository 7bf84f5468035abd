"""
Title: A model with several inputs and outputs
Description: Rank support tickets by priority and department.
"""

import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
from keras import layers

title = keras.Input((20,), name="title")
tags = keras.Input((12,), name="tags")
x = layers.Embedding(500, 32)(title)
x = layers.GlobalAveragePooling1D()(x)
x = layers.concatenate([x, tags])
x = layers.Dense(256, activation="relu")(x)
x = layers.Dense(256, activation="relu")(x)
priority = layers.Dense(1, name="priority")(x)
department = layers.Dense(4, activation="softmax", name="department")(x)
model = keras.Model([title, tags], [priority, department])
model.compile(
    optimizer="rmsprop",
    loss={"priority": "mse", "department": "sparse_categorical_crossentropy"},
    loss_weights={"priority": 1.0, "department": 0.2},
)
rng = np.random.default_rng(0)
count = 24_000
inputs = {
    "title": rng.integers(0, 500, (count, 20)),
    "tags": rng.integers(0, 2, (count, 12)).astype("float32"),
}
targets = {"priority": rng.random((count, 1)), "department": rng.integers(0, 4, count)}
model.fit(inputs, targets, epochs=40, batch_size=64, validation_split=0.1, verbose=2)
