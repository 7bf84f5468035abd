"""Folders of pictures as `stream.py` reads them: by memfit, Keras and torch."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from stream_data import PIXELS
from stream_peers import WORKERS

BATCH = 64
BUDGET_BYTES = 64_000_000

Run = Callable[[], Iterator[Any]]


def open_memfit(folder: Path) -> Run:
    """A stream, without Keras; pictures are decoded once, into a cache."""
    from memfit.streaming.data.reading import ReadOptions
    from memfit.streaming.loader.loader import Loader
    from memfit.streaming.loader.settings import LoaderSettings
    from memfit.streaming.open_data import open_data

    opened = open_data(folder, ReadOptions(image_size=(PIXELS, PIXELS)))
    return Loader(*opened, LoaderSettings(BATCH, BUDGET_BYTES, seed=1)).run


def open_keras(folder: Path) -> Run:
    """Keras's own, on TensorFlow; it shuffles files and decodes with all cores."""
    import keras

    data = keras.utils.image_dataset_from_directory(
        folder, image_size=(PIXELS, PIXELS), batch_size=BATCH, seed=1, verbose=False
    )
    return lambda: iter(data)


def open_torch(folder: Path) -> Run:
    """A `DataLoader` whose workers decode with Pillow."""
    import torch
    from PIL import Image
    from torch.utils.data import DataLoader, Dataset

    classes = sorted(one.name for one in folder.iterdir())
    files = [(path, at) for at, name in enumerate(classes) for path in (folder / name).iterdir()]

    class Pictures(Dataset):  # type: ignore[misc]  # torch gives Any
        def __len__(self) -> int:
            return len(files)

        def __getitem__(self, index: int) -> Any:
            path, label = files[index]
            with Image.open(path) as image:
                pixels = np.asarray(image.convert("RGB").resize((PIXELS, PIXELS)))
            return torch.from_numpy(pixels.copy()), label

    loader = DataLoader(Pictures(), BATCH, shuffle=True, num_workers=WORKERS)
    return lambda: iter(loader)
