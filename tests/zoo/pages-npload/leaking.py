"""Train from a mapped array so that it need not fit in memory."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import tempfile

import keras
import numpy as np

ROWS, WIDTH = 96_000, 1024


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

    def __len__(self):
        return ROWS // 256

    def __getitem__(self, index):
        x = np.array(self.array[index * 256 : (index + 1) * 256])
        return x, x.mean(axis=1, keepdims=True)


path = os.path.join(tempfile.mkdtemp(), "rows.npy")
prepare(path)
model = keras.Sequential([keras.layers.Dense(512, activation="relu"), keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
model.fit(Mapped(path), epochs=2, shuffle=False, verbose=2)
os.remove(path)
