"""Sources that are read in groups only, such as the row groups of Parquet."""

import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from memfit.streaming.data.ragged import Ragged
from memfit.streaming.data.reading import cut, join_values
from memfit.streaming.data.source import Array, Ranges, Schema, Values

# Groups of less than this are read several at a time: calls would cost more than bytes.
LEAST_GROUP_BYTES = 16 * 1024


class RowGroupSource(ABC):
    """Rows that come a group at a time; what makes a group of them is left to others.

    Args:
        schema: The columns.
        groups: Where each group begins, and the number of rows.
        scratch_bytes: What the decoding of a group takes, besides windows.
    """

    is_shuffled = False
    # Whether files may stay open between reads.
    stays_open = True

    def __init__(self, schema: Schema, groups: npt.NDArray[np.int64], scratch_bytes: int) -> None:
        self.schema = schema
        self.groups = groups
        self.num_rows = int(groups[-1])
        self.scratch_bytes = scratch_bytes
        self._edges: list[int] = groups.tolist()
        self._keeping = threading.Lock()
        self._kept: tuple[int, dict[str, Values]] | None = None

    @abstractmethod
    def decode(self, group: int) -> Iterator[tuple[str, Values]]:
        """Gives every column of a group with its values; may be called by several threads."""

    @abstractmethod
    def close(self) -> None:
        """Lets go of open files; the next read opens them again."""

    def read(self, start: int, stop: int) -> dict[str, Values]:
        """Returns rows; a group of which only some are read is kept for the next read."""
        found = [self._read_group(*chunk) for chunk in cut(self._edges, start, stop)]
        if not self.stays_open:
            self.close()
        return {one.name: join_values([each[one.name] for each in found]) for one in self.schema}

    def read_into(self, ranges: Ranges, into: Mapping[str, Array]) -> None:
        """Reads rows into arrays; no group is decoded twice for ranges in ascending order."""
        at = 0
        chunks = (chunk for start, stop in ranges for chunk in cut(self._edges, start, stop))
        for group, found in itertools.groupby(chunks, key=lambda chunk: chunk[0]):
            inside = [(start, stop) for _, start, stop in found]
            for name, values in self.decode(group):
                _copy(values, inside, into[name][at:])
                del values  # before the next are decoded
            at += sum(stop - start for start, stop in inside)
        if not self.stays_open:
            self.close()

    def _read_group(self, group: int, start: int, stop: int) -> Mapping[str, Values]:
        if (start, stop) == (0, self._edges[group + 1] - self._edges[group]):
            return dict(self.decode(group))
        with self._keeping:
            if self._kept is None or self._kept[0] != group:
                self._kept = None  # before memory for the next is taken
                self._kept = (group, dict(self.decode(group)))
            kept = self._kept[1]
        return {name: _slice(values, start, stop) for name, values in kept.items()}


def edges_of(sizes: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Returns where groups of these sizes begin, and where the last ends.

    Example:
    >>> edges_of([3, 4]).tolist()
    [0, 3, 7]
    """
    return np.concatenate(([0], np.cumsum(np.asarray(sizes, np.int64))))


def _slice(values: Values, start: int, stop: int) -> Values:
    if not isinstance(values, Ragged):
        return values[start:stop]
    offsets = values.offsets[start : stop + 1]
    return Ragged(values.values[offsets[0] : offsets[-1]], offsets - offsets[0])


def _copy(values: Values, ranges: Ranges, into: Array) -> None:
    at = 0
    for start, stop in ranges:
        into[at : at + stop - start] = values[start:stop]  # type: ignore[index]  # not ragged
        at += stop - start
