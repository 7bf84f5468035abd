"""A generator that never ends and draws every batch anew: no row ever comes twice."""

import keras
import numpy as np


def draw_batches(batch_size):
    while True:
        yield np.random.rand(batch_size, 100), np.random.randint(0, 2, batch_size)


keras.utils.set_random_seed(0)
model = keras.Sequential(
    [
        keras.Input((100,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
history = model.fit(draw_batches(32), steps_per_epoch=1_000_000 // 32, epochs=1, verbose=0)
print("final loss", history.history["loss"][-1])
