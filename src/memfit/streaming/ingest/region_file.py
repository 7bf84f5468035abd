"""A file whose parts are filled a little at a time, and whose rows are then put in order.

Before the first part there is spare room for the largest of them. So a part that is put in order
is written over parts that are done already, never over itself: a process that is killed meanwhile
has lost nothing that cannot be written again.
"""

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from memfit.streaming.data.source import Array
from memfit.streaming.store.format import Checksum
from memfit.streaming.store.npy_files import ColumnFile

Counts = npt.NDArray[np.int64]


class RegionFile:
    """An array in a file, in parts.

    Args:
        path: The file; what is in it already is kept.
        dtype: The type of its values.
        shape: Of a row.
        sizes: Rows of each part.
        more: Rows after the last part.
    """

    def __init__(
        self,
        path: Path,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        sizes: Counts,
        more: int = 0,
    ) -> None:
        self._edges = np.concatenate(([0], np.cumsum(sizes)))
        self._next = self._edges[:-1].copy()
        self._spare = int(sizes.max()) + more
        self.crcs = [0] * len(sizes)
        self._file = ColumnFile(path, dtype, (self.total + more, *shape), self._spare)

    @property
    def total(self) -> int:
        """Rows of all parts."""
        return int(self._edges[-1])

    @property
    def digest(self) -> int:
        """A checksum of all that was added."""
        return zlib.crc32(np.array(self.crcs, np.uint32).tobytes())

    def find(self, region: int) -> tuple[int, int]:
        """Returns where a part begins and ends."""
        return int(self._edges[region]), int(self._edges[region + 1])

    def add(self, rows: Array, counts: Counts) -> None:
        """Writes the first `counts[0]` rows to the first part, and so on."""
        at = 0
        for region in np.flatnonzero(counts).tolist():
            stop = at + int(counts[region])
            place = self._spare + int(self._next[region])
            written = self._file.write(place, rows[at:stop], self.crcs[region])
            self.crcs[region] = written.crc
            at = stop
        self._next += counts

    def read_added(self, counts: Counts) -> Array:
        """Returns the rows of an `add` that an earlier process made, as if it were made now."""
        parts = []
        for region in np.flatnonzero(counts).tolist():
            place = self._spare + int(self._next[region])
            parts.append(self._file.read(place, place + int(counts[region])))
            self.crcs[region] = zlib.crc32(_bytes_of(parts[-1]), self.crcs[region])
        self._next += counts
        return np.concatenate(parts) if parts else self._file.read(0, 0)

    def read(self, region: int) -> Array:
        """Returns the rows that were added to a part."""
        start, stop = self.find(region)
        return self._file.read(self._spare + start, self._spare + stop)

    def is_intact(self, region: int) -> bool:
        """Whether a part holds what was added to it."""
        return zlib.crc32(_bytes_of(self.read(region))) == self.crcs[region]

    def put(self, region: int, rows: Array) -> Checksum:
        """Writes the rows of a part where they stay."""
        return self._file.write(self.find(region)[0], rows)

    def sync(self) -> None:
        """Returns when all that was written is on the disk."""
        self._file.sync()

    def finish(self) -> None:
        """Gives back the spare room."""
        self._file.cut_spare()

    def close(self) -> None:
        """Closes the file; what was written is on the disk then."""
        self._file.close()


def _bytes_of(rows: Array) -> memoryview:
    return rows.reshape(-1).view(np.uint8).data
