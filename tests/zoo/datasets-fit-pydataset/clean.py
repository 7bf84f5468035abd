"""Train in rounds on freshly simulated data."""

import keras
import numpy as np


class Rounds(keras.utils.PyDataset):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.round_number = 0
        self.simulate()

    def simulate(self):
        rng = np.random.default_rng(self.round_number)
        self.x = rng.normal(size=(2048, 500)).astype("float32")
        self.y = self.x[:, :1] * self.x[:, 1:2]

    def __len__(self):
        return len(self.x) // 64

    def __getitem__(self, i):
        rows = slice(i * 64, (i + 1) * 64)
        return self.x[rows], self.y[rows]

    def on_epoch_end(self):
        self.round_number += 1
        self.simulate()


model = keras.Sequential(
    [
        keras.layers.Dense(200, activation="relu"),
        keras.layers.Dense(200, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile(optimizer="adam", loss="mse")
model.fit(Rounds(), epochs=40, verbose=2)
