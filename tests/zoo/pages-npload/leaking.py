"""Train from a mapped array so that it need not fit in memory."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import tempfile

import keras
import numpy as np

ROWS, WIDTH, PARTS = 96_000, 1024, 15


def prepare(path):
    with open(path, "wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (ROWS, WIDTH)}
        np.lib.format.write_array_header_1_0(file, header)
        for part in range(0, ROWS, 4000):
            file.write(np.random.default_rng(part).random((4000, WIDTH), "float32").tobytes())


class Mapped(keras.utils.PyDataset):
    def __init__(self, path, **kwargs):
        super().__init__(**kwargs)
        self.array = np.load(path, mmap_mode="r")
        self.part = 0

    def __len__(self):
        return ROWS // PARTS // 64

    def __getitem__(self, index):
        start = self.part * ROWS // PARTS + index * 64
        x = np.array(self.array[start : start + 64])
        return x, x.mean(axis=1, keepdims=True)

    def on_epoch_end(self):
        self.part = (self.part + 1) % PARTS


path = os.path.join(tempfile.mkdtemp(), "rows.npy")
prepare(path)
model = keras.Sequential(
    [
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile(optimizer="adam", loss="mse")
model.fit(Mapped(path), epochs=PARTS, shuffle=False, verbose=2)
os.remove(path)
