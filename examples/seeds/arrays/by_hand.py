"""The rows stay in a file; a PyDataset reads one batch of neighbours at a time."""

from pathlib import Path

import keras
import numpy as np

DATA = Path(__file__).parents[1] / "data"
BATCH = 32


class Rows(keras.utils.PyDataset):
    def __init__(self):
        super().__init__()
        self.x = np.load(DATA / "x.npy", mmap_mode="r")
        self.y = np.load(DATA / "y.npy", mmap_mode="r")

    def __len__(self):
        return len(self.x) // BATCH

    def __getitem__(self, number):
        rows = slice(number * BATCH, (number + 1) * BATCH)
        return np.array(self.x[rows]), np.array(self.y[rows])


keras.utils.set_random_seed(0)
model = keras.Sequential(
    [
        keras.Input((100,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
history = model.fit(Rows(), epochs=1, verbose=0)
print("final loss", history.history["loss"][-1])
