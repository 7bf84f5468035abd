"""A deep model with small batches: what the first step takes, its batches do not."""

import keras
import numpy as np

layers = keras.layers
x = np.random.default_rng(0).random((1024, 64), dtype="float32")
hidden = inputs = keras.Input((64,))
for _ in range(48):
    hidden = layers.add([hidden, layers.Dense(64, activation="gelu")(hidden)])
    hidden = layers.LayerNormalization()(hidden)
model = keras.Model(inputs, layers.Dense(1)(hidden))
model.compile("adam", "mse")
model.fit(x, x[:, :1], batch_size=32, epochs=40, verbose=0)
