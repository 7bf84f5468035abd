"""`.npy` files while they are written: of known size, or growing until there are no more rows."""

import math
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from memfit.streaming.data.source import Array
from memfit.streaming.store.format import Checksum

# Text is given this many characters more at a time, so that it seldom has to be written again.
_TEXT_STEP = 4
_COPY_BYTES = 1 << 22


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
                raise OSError(f"{self._name} ends too early: another program truncated it.")
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


class GrowingFile:
    """An array in a new file, of which the number of rows is not known yet.

    Args:
        path: The file.
        dtype: The type of its values; text may get longer later on.
        shape: The shape of a row.
    """

    def __init__(self, path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self.dtype = with_room(dtype)
        self.num_rows = 0
        self._path = path
        self._shape = shape
        self._crc = 0
        self._file = path.open("xb+")
        self._write_header()
        self._offset = self._file.tell()

    def append(self, rows: Array) -> None:
        """Writes rows after those that are there."""
        if with_room(rows.dtype).itemsize > self.dtype.itemsize:
            self._widen(rows.dtype)
        data = np.ascontiguousarray(rows, self.dtype).reshape(-1).view(np.uint8).data
        self._file.write(data)
        self._crc = zlib.crc32(data, self._crc)
        self.num_rows += len(rows)

    def finish(self) -> Checksum:
        """Writes how many rows there are; the file is on the disk then. Returns its checksum."""
        stop = self._file.tell()
        self._file.seek(0)
        self._write_header()  # NumPy leaves room in it for any number of rows
        self._file.flush()
        os.fsync(self._file.fileno())
        self.close()
        return Checksum(self._path.name, self._offset, stop, self._crc)

    def close(self) -> None:
        """Closes the file as it is."""
        self._file.close()

    def _write_header(self) -> None:
        header = {
            "descr": np.lib.format.dtype_to_descr(self.dtype),
            "fortran_order": False,
            "shape": (self.num_rows, *self._shape),
        }
        np.lib.format.write_array_header_1_0(self._file, header)

    def _widen(self, dtype: np.dtype[Any]) -> None:
        """Writes all rows again, with room for longer text."""
        wider_path = self._path.with_name(f"{self._path.name}.wider")
        wider = GrowingFile(wider_path, dtype, self._shape)
        row_bytes = math.prod(self._shape) * self.dtype.itemsize
        self._file.seek(self._offset)
        while data := self._file.read(max(1, _COPY_BYTES // row_bytes) * row_bytes):
            wider.append(np.frombuffer(data, self.dtype).reshape(-1, *self._shape))
        self._file.close()
        wider_path.replace(self._path)
        self.dtype, self._file, self._crc = wider.dtype, wider._file, wider._crc
        self._offset = wider._offset


def with_room(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Returns the type that values are stored as: in this byte order, and text a little longer.

    Example:
    >>> with_room(np.dtype("<U5"))
    dtype('<U8')
    """
    if dtype.kind not in "US":
        return dtype.newbyteorder("=")
    characters = dtype.itemsize // np.dtype(f"{dtype.kind}1").itemsize
    return np.dtype(f"{dtype.kind}{max(1, -(-characters // _TEXT_STEP)) * _TEXT_STEP}")
