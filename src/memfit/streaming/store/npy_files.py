"""A `.npy` file that rows are added to until there are no more."""

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
