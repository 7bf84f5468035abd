"""Train from many small HDF5 shards."""

import tempfile
from pathlib import Path

import h5py
import keras
import numpy as np


def write_shards(folder, count):
    rng = np.random.default_rng(0)
    for number in range(count):
        with h5py.File(folder / f"{number:03d}.h5", "w") as shard:
            pixels = rng.normal(size=(3000, 784)).astype("float32")
            shard.create_dataset("pixels", data=pixels, chunks=(500, 784))


class ShardReader:
    def __init__(self, folder):
        self.paths = sorted(folder.glob("*.h5"))

    def read(self, path):
        with h5py.File(path, "r", rdcc_nbytes=16 << 20) as shard:
            block = shard["pixels"][:]
        return block, block[:, :1]


def main():
    keras.utils.set_random_seed(1)
    folder = Path(tempfile.mkdtemp())
    write_shards(folder, 22)
    model = keras.Sequential([keras.layers.Dense(1024, activation="relu"), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    reader = ShardReader(folder)
    for path in reader.paths:
        x, y = reader.read(path)
        for start in range(0, len(x), 25):
            loss = model.train_on_batch(x[start : start + 25], y[start : start + 25])
        print(path.name, float(loss))
        path.unlink()


if __name__ == "__main__":
    main()
