"""Arrays kept in a file, which takes no memory, to be read back."""

import tempfile
import weakref
from collections.abc import Iterable, Iterator
from typing import Any


class Kept:
    """Copies of arrays in a file that is gone when nothing refers to it any more.

    Args:
        arrays: NumPy arrays; one at a time is in memory.
    """

    def __init__(self, arrays: Iterable[Any]) -> None:
        self._file = tempfile.TemporaryFile(prefix="memfit-")  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._kinds = []
        for one in arrays:
            self._kinds.append((one.dtype, one.shape))
            self._file.write(one.reshape(-1).view("uint8"))
        self._file.flush()

    def read(self) -> Iterator[Any]:
        """Gives the arrays: views of the file, of which the system holds what it has room for."""
        import numpy as np

        offset_bytes = 0
        for dtype, shape in self._kinds:
            size_bytes = int(np.prod(shape, dtype="int64")) * dtype.itemsize
            if size_bytes:
                yield np.memmap(self._file, dtype, "r+", offset_bytes, shape)
            else:
                yield np.zeros(shape, dtype)
            offset_bytes += size_bytes

    def close(self) -> None:
        """Deletes the file."""
        self._file.close()
