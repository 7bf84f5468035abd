"""Mixed precision on a dense network."""

import keras
import numpy as np

keras.mixed_precision.set_global_policy("mixed_bfloat16")
x = np.random.default_rng(0).normal(size=(10_000, 128)).astype("float32")
y = np.arange(10_000) % 4
model = keras.Sequential(
    [
        keras.layers.Dense(128, activation="relu"),
        keras.layers.Dense(128, activation="relu"),
        keras.layers.Dense(4, activation="softmax", dtype="float32"),
    ]
)
schedule = keras.optimizers.schedules.ExponentialDecay(1e-3, 200, 0.9)
model.compile(keras.optimizers.Adam(schedule), "sparse_categorical_crossentropy")
model.fit(x, y, epochs=42, batch_size=100, verbose=2)
