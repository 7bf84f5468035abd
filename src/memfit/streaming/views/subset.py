"""Some rows of a source as a source of their own: the two sides of a split."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from memfit.errors import UsageError
from memfit.streaming.data.reading import cut, join_values
from memfit.streaming.data.source import Array, Ranges, Source, Values, read_into, row_bytes

# Rows that stay together: apart, each would cost a read of its own.
_UNIT_BYTES = 32 * 1024
# With fewer groups than this, whole ones would not make a fair share.
_LEAST_GROUPS = 50
_SPLIT_SEED = 0x5EED

Rows = npt.NDArray[np.int64]


class RowSubset:
    """The rows of a source that lie in some ranges.

    Args:
        source: All rows.
        starts: Where each range begins, ascending.
        stops: Where it ends.
    """

    def __init__(self, source: Source, starts: Rows, stops: Rows) -> None:
        self._source = source
        self._starts, self._stops = starts, stops
        edges = np.concatenate(([0], np.cumsum(stops - starts)))
        self._edges: list[int] = edges.tolist()
        self.num_rows = self._edges[-1]
        self.schema = source.schema
        self.groups = None if source.groups is None else edges
        self.is_shuffled = source.is_shuffled
        self.scratch_bytes = source.scratch_bytes

    def fingerprint(self) -> str:
        """Returns a text made of that of all rows and of which of them these are."""
        digest = hashlib.sha256(self._source.fingerprint().encode())
        digest.update(self._starts.tobytes())
        digest.update(self._stops.tobytes())
        return digest.hexdigest()[:32]

    def check(self) -> None:
        """Raises if the source was changed."""
        self._source.check()

    def read(self, start: int, stop: int) -> dict[str, Values]:
        """Returns rows."""
        found = [self._source.read(first, last) for first, last in self._find(start, stop)]
        return {one.name: join_values([each[one.name] for each in found]) for one in self.schema}

    def read_into(self, ranges: Ranges, into: Mapping[str, Array]) -> None:
        """Reads rows into arrays."""
        found = [one for start, stop in ranges for one in self._find(start, stop)]
        read_into(self._source, found, into)

    def take(self, values: Array) -> Array:
        """Returns those of some values, one for each row of the source, that belong to these."""
        pairs = zip(self._starts, self._stops, strict=True)
        return np.concatenate([values[start:stop] for start, stop in pairs])

    def _find(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """The ranges of the source behind these rows."""
        for index, first, last in cut(self._edges, start, stop):
            begin = int(self._starts[index])
            yield begin + first, begin + last


@runtime_checkable
class SplitsItself(Protocol):
    """A source that is not the same on both sides of a split."""

    def split(self, share: float) -> tuple[Source, Source]:
        """Returns two sides without a row in common."""


def split_rows(source: Source, share: float) -> tuple[Source, Source]:
    """Returns `share` of the rows and the others; always the same ones for the same data.

    Units of neighbours are drawn at random, so that both sides have rows from all over the data.
    Units are groups where there are many, else some 32 kB of rows.

    Raises:
        UsageError: A side would have no rows.
    """
    if isinstance(source, SplitsItself):
        return source.split(share)
    num_first = round(share * source.num_rows)
    if not 0 < num_first < source.num_rows:
        raise UsageError(
            f"A split needs rows on both sides. Received: {share!r} of {source.num_rows} rows. "
            "Expected a share above 0 and below 1, such as split(0.9)."
        )
    edges = _unit_edges(source)
    starts, stops = edges[:-1], edges[1:]
    units = np.random.Generator(np.random.Philox(_SPLIT_SEED)).permutation(len(starts))
    starts, stops = starts[units], stops[units]
    ends = np.cumsum(stops - starts)
    # The unit in which the share is reached is cut, so that the share is exact.
    cut = int(np.searchsorted(ends, num_first))
    middle = stops[cut] - (ends[cut] - num_first)
    first = (np.append(starts[:cut], starts[cut]), np.append(stops[:cut], middle))
    second = (np.append(starts[cut + 1 :], middle), np.append(stops[cut + 1 :], stops[cut]))
    return _part(source, *first), _part(source, *second)


def _part(source: Source, starts: Rows, stops: Rows) -> RowSubset:
    kept = np.flatnonzero(stops > starts)
    kept = kept[np.argsort(starts[kept])]
    return RowSubset(source, starts[kept], stops[kept])


def _unit_edges(source: Source) -> Rows:
    if source.groups is not None and len(source.groups) > _LEAST_GROUPS:
        return source.groups
    # Of little data there are still enough units for a fair draw.
    unit_rows = max(1, min(int(_UNIT_BYTES / row_bytes(source.schema)), source.num_rows // 1000))
    edges = np.append(np.arange(0, source.num_rows, unit_rows, dtype=np.int64), source.num_rows)
    return edges if source.groups is None else np.union1d(edges, source.groups)
