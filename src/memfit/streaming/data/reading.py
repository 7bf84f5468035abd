"""Reads of any source: which columns, in which chunks of rows, and chunks put together again."""

import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memfit.errors import DataError, UsageError
from memfit.streaming.data.ragged import Ragged, concatenate
from memfit.streaming.data.source import Ranges, Source, Values, row_bytes

# Rows that are read together where there are no groups.
_CHUNK_BYTES = 1 << 20
FEATURES = ("columns", "matrix")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a user wants data to be read.

    Attributes:
        columns: The columns to read of one source; all of them if `None`.
        label: The column that is the label, where one source has them all. It need not be among
            `columns`.
        features: `"matrix"` to put all columns but the label side by side.
        image_size: Height and width that pictures are resized to.
        filesystem: A `pyarrow.fs.FileSystem` that paths are in; this machine's if `None`.

    Raises:
        UsageError: One of them cannot be what it is.
    """

    columns: Sequence[str] | None = None
    label: str | None = None
    features: str = "columns"
    image_size: tuple[int, int] | None = None
    filesystem: Any = None

    def __post_init__(self) -> None:
        if self.features not in FEATURES:
            raise UsageError(
                f'features must be "columns" or "matrix". Received: {self.features!r}.'
            )
        if self.columns is not None:
            _check_columns(self.columns)


def pick(columns: Sequence[str] | None, names: Sequence[str], where: str) -> list[str]:
    """Returns the names of the columns to read: those that are asked for, or all.

    Raises:
        DataError: One is not there.
    """
    missing = [one for one in columns or () if one not in names]
    if missing:
        raise DataError(f"There is no column {missing[0]!r} in {where}. Found: {', '.join(names)}.")
    return list(names if columns is None else columns)


def _check_columns(columns: object) -> None:
    """Raises if `columns` is not a list of different names."""
    if (
        isinstance(columns, str)
        or not isinstance(columns, Sequence)
        or not columns
        or not all(isinstance(one, str) for one in columns)
        or len(set(columns)) < len(columns)
    ):
        raise UsageError(
            f"columns must be a list of different names, one or more. Received: {columns!r}."
        )


def cut(edges: Sequence[int], start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """Gives the parts between `edges` that hold these rows: which, and its rows as it counts them.

    Example:
    >>> list(cut([0, 4, 9], 2, 6))
    [(0, 2, 4), (1, 0, 2)]
    """
    at = bisect.bisect_right(edges, start) - 1
    while start < stop:
        first, last = edges[at], min(edges[at + 1], stop)
        yield at, start - first, last - first
        start = last
        at += 1


def join_values(parts: Sequence[Values]) -> Values:
    """Returns the values of one column for all parts."""
    if len(parts) == 1:
        return parts[0]
    ragged = [one for one in parts if isinstance(one, Ragged)]
    if ragged:
        return concatenate(ragged)
    return np.concatenate([one for one in parts if not isinstance(one, Ragged)])


def chunk_bytes(source: Source) -> int:
    """Returns the most that the values of one of `read_chunks` take."""
    if source.groups is None:
        return max(_CHUNK_BYTES, int(row_bytes(source.schema)))
    return int((source.groups[1:] - source.groups[:-1]).max() * row_bytes(source.schema))


def read_chunks(source: Source, ranges: Ranges) -> Iterator[tuple[int, Mapping[str, Values]]]:
    """Gives the rows of all ranges, no more than a group at a time, and the place of the first."""
    edges = None if source.groups is None else source.groups.tolist()
    most = max(1, int(_CHUNK_BYTES / row_bytes(source.schema)))
    at = 0
    for start, stop in ranges:
        if edges is None:
            chunks = [(one, min(one + most, stop)) for one in range(start, stop, most)]
        else:
            chunks = [
                (edges[group] + first, edges[group] + last)
                for group, first, last in cut(edges, start, stop)
            ]
        for first, last in chunks:
            yield at, source.read(first, last)
            at += last - first
