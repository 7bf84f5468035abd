"""Train in rounds on freshly simulated data."""

import keras
import numpy as np


class RoundData(keras.utils.PyDataset):
    def __init__(self, seed, **kwargs):
        super().__init__(**kwargs)
        rng = np.random.default_rng(seed)
        self.x = rng.normal(size=(2048, 500)).astype("float32")
        self.y = self.x[:, :1] * self.x[:, 1:2]

    def __len__(self):
        return len(self.x) // 64

    def __getitem__(self, i):
        rows = slice(i * 64, (i + 1) * 64)
        return self.x[rows], self.y[rows]


model = keras.Sequential(
    [
        keras.layers.Dense(200, activation="relu"),
        keras.layers.Dense(200, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile(optimizer="adam", loss="mse")
for round_number in range(24):
    model.fit(RoundData(round_number), epochs=1, verbose=0)
    print("round", round_number, "done")
