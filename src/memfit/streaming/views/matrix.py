"""Columns of numbers side by side as one matrix: what a dense layer takes for tabular data."""

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from memfit.errors import DataError
from memfit.streaming.data.ragged import Ragged
from memfit.streaming.data.reading import chunk_bytes, read_chunks
from memfit.streaming.data.source import Array, Column, Ranges, Source, Values, allocate

NAME = "x"
# What Keras computes in; of other numbers its layers would make these themselves.
_DTYPE = np.dtype("float32")
# Rows as they are read; allocators keep the last chunk for a while when the next is read.
_CHUNKS = 2


class Matrix:
    """A source whose columns of single numbers became one, and others stay as they are.

    Args:
        source: The columns.
        columns: Those that make the matrix, in the order of its columns.

    Raises:
        DataError: One of them does not hold single numbers.
    """

    def __init__(self, source: Source, columns: Sequence[str]) -> None:
        by_name = {one.name: one for one in source.schema}
        for name in columns:
            _check_kind(by_name[name])
        self._source = source
        self._columns = list(columns)
        self._others = [one for one in source.schema if one.name not in set(columns)]
        # A column of the same name stays what it is.
        self.name = NAME if NAME not in {one.name for one in self._others} else "features"
        self.schema = (Column(self.name, _DTYPE, (len(columns),)), *self._others)
        self.num_rows = source.num_rows
        self.groups = source.groups
        self.is_shuffled = source.is_shuffled
        self.scratch_bytes = source.scratch_bytes + _CHUNKS * chunk_bytes(source)

    def fingerprint(self) -> str:
        """Returns a text made of that of the columns and of their order."""
        names = "\0".join(self._columns)
        return hashlib.sha256(f"{self._source.fingerprint()}{names}".encode()).hexdigest()[:32]

    def check(self) -> None:
        """Raises if the source was changed."""
        self._source.check()

    def read(self, start: int, stop: int) -> dict[str, Values]:
        """Returns rows."""
        arrays = allocate(self.schema, stop - start)
        ragged = {one.name for one in self._others if one.is_ragged}
        if not ragged:
            self.read_into([(start, stop)], arrays)
            return {**arrays}
        found = self._source.read(start, stop)
        self._put(found, arrays)
        return {**arrays, **{name: found[name] for name in ragged}}

    def read_into(self, ranges: Ranges, into: Mapping[str, Array]) -> None:
        """Reads rows into arrays, a chunk at a time."""
        for at, values in read_chunks(self._source, ranges):
            self._put(values, {name: one[at:] for name, one in into.items()})
            del values  # before the next are read

    def _put(self, values: Mapping[str, Values], into: Mapping[str, Array]) -> None:
        matrix = into[self.name]
        for at, name in enumerate(self._columns):
            matrix[: len(values[name]), at] = values[name]
        for one in self._others:
            found = values[one.name]
            if not isinstance(found, Ragged):
                into[one.name][: len(found)] = found


def _check_kind(column: Column) -> None:
    if column.is_ragged or column.shape or column.dtype.kind not in "fiub":
        what = "sequences" if column.is_ragged else f"{column.dtype} {column.shape}"
        raise DataError(
            f'features="matrix" needs a number in every row. Column {column.name!r} holds {what}. '
            "Leave it out with columns=[...]."
        )
