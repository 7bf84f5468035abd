"""Writes the rows that the examples train on to examples/seeds/data, once: 600 MB."""

from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data"
ROWS, IMAGES, CHUNK = 1_000_000, 60_000, 10_000


def write(name, shape, draw):
    """Fills one file chunk by chunk, so that it never is in memory whole."""
    unfinished = DATA / f"unfinished-{name}"
    columns = np.lib.format.open_memmap(unfinished, "w+", draw(1).dtype, shape)
    for begin in range(0, shape[0], CHUNK):
        columns[begin : begin + CHUNK] = draw(CHUNK)
    columns.flush()
    unfinished.rename(DATA / name)


def main():
    DATA.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    write("x.npy", (ROWS, 100), lambda n: rng.random((n, 100)).astype("float32"))
    write("y.npy", (ROWS,), lambda n: rng.integers(0, 2, n))
    write("images.npy", (IMAGES, 784), lambda n: rng.random((n, 784), dtype="float32"))
    write("digits.npy", (IMAGES,), lambda n: rng.integers(0, 10, n))


if __name__ == "__main__":
    main()
