"""Datasets of an HDF5 file that a script has open: read from the file, and not whole."""

import sys
from pathlib import Path
from typing import Any

from memfit.errors import DataError
from memfit.streaming.data.source import Source
from memfit.streaming.sources.hdf5 import open_datasets


def accepts(value: Any) -> bool:
    """Whether this is a dataset with a name, of a file on disk."""
    h5py = sys.modules.get("h5py")
    if h5py is None or not isinstance(value, h5py.Dataset):
        return False
    return not value or (value.name is not None and Path(value.file.filename).is_file())


def open_object(value: Any) -> Source:
    """Returns the rows of a dataset; they can be read also when its file is closed.

    Raises:
        DataError: Its file is closed already, or it holds what cannot be streamed.
    """
    if not value:
        raise DataError(
            "The file of this HDF5 dataset is closed. Make the stream while it is open, or give "
            'the path: memfit.stream("data.h5", columns=["x"], ...).'
        )
    if value.file.mode != "r":
        value.file.flush()
    return open_datasets(Path(value.file.filename), lambda _: {value.name.strip("/"): value})
