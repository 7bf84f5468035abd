"""A `.npy` file of known size that is written, and read again, at any place."""

import math
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from memfit.streaming.data.source import Array
from memfit.streaming.store.format import Checksum


class ColumnFile:
    """An array in a file.

    Args:
        path: The file; what is in it already is kept.
        dtype: The type of its values.
        shape: Of the whole array.
        spare: How many more rows there is room for until `cut_spare()`.
    """

    def __init__(
        self, path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], spare: int = 0
    ) -> None:
        self._name = path.name
        self._dtype = dtype
        self._shape = shape[1:]
        self._row_bytes = math.prod(shape[1:]) * dtype.itemsize
        path.touch()
        self._file = path.open("rb+", buffering=0)
        header = {
            "descr": np.lib.format.dtype_to_descr(dtype),
            "fortran_order": False,
            "shape": shape,
        }
        np.lib.format.write_array_header_1_0(self._file, header)
        self._offset = self._file.tell()
        self._size_bytes = self._offset + shape[0] * self._row_bytes
        self._file.truncate(self._size_bytes + spare * self._row_bytes)

    def write(self, start: int, rows: Array, crc: int = 0) -> Checksum:
        """Writes rows from `start` on; returns their checksum, which goes on from `crc`."""
        data = np.ascontiguousarray(rows, self._dtype).reshape(-1).view(np.uint8).data
        at = self._offset + start * self._row_bytes
        self._file.seek(at)
        rest = data
        while len(rest):
            rest = rest[self._file.write(rest) or 0 :]
        return Checksum(self._name, at, at + len(data), zlib.crc32(data, crc))

    def read(self, start: int, stop: int) -> Array:
        """Returns rows that were written."""
        rows = np.empty((stop - start, *self._shape), self._dtype)
        self._file.seek(self._offset + start * self._row_bytes)
        rest = rows.reshape(-1).view(np.uint8).data
        while len(rest):
            number = self._file.readinto(rest)
            if not number:
                raise OSError(f"{self._name} ends too early: it was cut by somebody else.")
            rest = rest[number:]
        return rows

    def cut_spare(self) -> None:
        """Ends the file where the array ends."""
        self._file.truncate(self._size_bytes)

    def sync(self) -> None:
        """Returns when all that was written is on the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes the file; what was written is on the disk then."""
        self.sync()
        self._file.close()
