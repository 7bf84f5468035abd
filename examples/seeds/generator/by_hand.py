"""A generator over rows that exist: each epoch gives every batch once, in a new order."""

from pathlib import Path

import keras
import numpy as np

DATA = Path(__file__).parents[1] / "data"


def read_batches(batch_size):
    x = np.load(DATA / "x.npy", mmap_mode="r")
    y = np.load(DATA / "y.npy", mmap_mode="r")
    while True:
        for begin in batch_size * np.random.permutation(len(x) // batch_size):
            rows = slice(begin, begin + batch_size)
            yield np.array(x[rows]), np.array(y[rows])


keras.utils.set_random_seed(0)
model = keras.Sequential(
    [
        keras.Input((100,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
history = model.fit(read_batches(32), steps_per_epoch=1_000_000 // 32, epochs=1, verbose=0)
print("final loss", history.history["loss"][-1])
