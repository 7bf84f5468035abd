"""Arrays kept in a file, which takes no memory, to be read back."""

import tempfile
from collections.abc import Iterable, Iterator
from typing import Any


class Kept:
    """Copies of arrays in a file that is gone when nothing refers to it any more.

    Args:
        arrays: NumPy arrays; one at a time is in memory.
    """

    def __init__(self, arrays: Iterable[Any]) -> None:
        self._file = tempfile.TemporaryFile(prefix="memfit-")  # noqa: SIM115
        self._kinds = []
        for one in arrays:
            self._kinds.append((one.dtype, one.shape))
            self._file.write(one.tobytes())
        self._file.flush()

    def read(self) -> Iterator[Any]:
        """Gives the arrays, one at a time."""
        import numpy as np

        self._file.seek(0)
        for dtype, shape in self._kinds:
            count = int(np.prod(shape, dtype="int64"))
            data = self._file.read(count * dtype.itemsize)
            yield np.frombuffer(data, dtype, count).reshape(shape)

    def close(self) -> None:
        """Deletes the file."""
        self._file.close()
