"""Arrays that NumPy maps from a file, as `np.load(..., mmap_mode="r")` gives them.

They are read from the file itself: what is read through a mapping counts as memory of the process
for as long as the system likes.
"""

import mmap
from pathlib import Path
from typing import Any

import numpy as np

from memfit.streaming.files.local import DataFile
from memfit.streaming.files.npy import NAME, Npy, Stored


def accepts(value: Any) -> bool:
    """Whether this is a part of a file without gaps, which nobody can write to by this array."""
    return (
        type(value) is np.memmap
        and value.mode == "r"
        and value.filename is not None
        and value.ndim > 0
        and value.flags.c_contiguous
        and Path(value.filename).is_file()
    )


def open_object(value: Any) -> Npy:
    """Returns the rows of the file behind an array."""
    mapping = value._mmap  # a slice knows only where the whole begins
    first = np.frombuffer(mapping, np.uint8).ctypes.data
    begin = value.offset - value.offset % mmap.ALLOCATIONGRANULARITY
    offset = begin + value.ctypes.data - first
    return Npy({NAME: (DataFile(Path(value.filename)), Stored(value.dtype, value.shape, offset))})
