"""Many files as one source: the rows of the first, then those of the second, and so on."""

import contextlib
import dataclasses
import hashlib
import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from memfit.errors import DataError
from memfit.streaming.data.reading import cut, join_values
from memfit.streaming.data.source import (
    Array,
    Column,
    Ranges,
    Schema,
    Source,
    Values,
    joint_scratch_bytes,
    read_into,
)

# More files than this are closed after each use: a process may have some 1,000 open.
_MOST_OPEN = 128
_MOST_SHOWN = 5


class Concatenation:
    """Sources with the same columns, one after another.

    Args:
        parts: The sources.
        names: What to call each in messages.
    """

    is_shuffled = False

    def __init__(self, parts: Sequence[Source], names: Sequence[str]) -> None:
        self.parts = list(parts)
        self._edges = list(itertools.accumulate((one.num_rows for one in parts), initial=0))
        self.num_rows = self._edges[-1]
        self.schema = _common_schema(parts, names)
        self.groups = _all_groups(parts, self._edges)
        is_closed = len(parts) > _MOST_OPEN
        self.scratch_bytes = (
            max(one.scratch_bytes for one in parts) if is_closed else joint_scratch_bytes(parts)
        )
        self._closing = threading.Lock() if is_closed else None

    def fingerprint(self) -> str:
        """Returns a text made of those of all parts."""
        digest = hashlib.sha256()
        for part in self.parts:
            with self._using(part):
                digest.update(part.fingerprint().encode())
        return digest.hexdigest()[:32]

    def check(self) -> None:
        """Raises if a part was changed."""
        for part in self.parts:
            part.check()

    def read(self, start: int, stop: int) -> dict[str, Values]:
        """Returns rows, of several parts if need be."""
        found = []
        for index, first, last in cut(self._edges, start, stop):
            with self._using(self.parts[index]):
                found.append(self.parts[index].read(first, last))
        return {one.name: join_values([each[one.name] for each in found]) for one in self.schema}

    def read_into(self, ranges: Ranges, into: Mapping[str, Array]) -> None:
        """Reads rows into arrays."""
        at = 0
        chunks = (chunk for start, stop in ranges for chunk in cut(self._edges, start, stop))
        # Neighbours from one part are read in one go.
        for index, found in itertools.groupby(chunks, key=lambda chunk: chunk[0]):
            inside = [(start, stop) for _, start, stop in found]
            with self._using(self.parts[index]):
                read_into(self.parts[index], inside, {name: one[at:] for name, one in into.items()})
            at += sum(stop - start for start, stop in inside)

    @contextlib.contextmanager
    def _using(self, part: Any) -> Iterator[None]:
        if self._closing is None:
            yield
            return
        with self._closing:
            yield
            if hasattr(part, "close"):
                part.close()


def concatenate_sources(parts: Sequence[Source], names: Sequence[str] | None = None) -> Source:
    """Returns one source for all parts.

    Args:
        parts: The sources.
        names: What to call each in messages: its path, where it has one.

    Raises:
        DataError: They differ in their columns.
    """
    if len(parts) == 1:
        return parts[0]
    return Concatenation(parts, names or [f"part {at + 1}" for at in range(len(parts))])


def _common_schema(parts: Sequence[Source], names: Sequence[str]) -> Schema:
    first = parts[0].schema
    for name, part in zip(names, parts, strict=True):
        if [_kind(one) for one in part.schema] != [_kind(one) for one in first]:
            raise DataError(
                f"The parts of this data differ: {names[0]} has {describe(first)}, {name} has "
                f"{describe(part.schema)}. Expected the same columns, types, shapes and "
                "categories in all of them. Leave out the one that differs, or write it again."
            )
    return tuple(_over_all(parts, at) for at in range(len(first)))


def _over_all(parts: Sequence[Source], at: int) -> Column:
    """A column of all parts: the mean length of its sequences is that of all rows."""
    columns = [part.schema[at] for part in parts]
    lengths = [one.mean_length for one in columns if one.mean_length is not None]
    if not lengths:
        return columns[0]
    mean = float(np.average(lengths, weights=[part.num_rows for part in parts]))
    return dataclasses.replace(columns[0], mean_length=mean)


def _kind(column: Column) -> tuple[Any, ...]:
    return column.name, column.dtype, column.shape, column.is_ragged, column.categories


def describe(schema: Schema) -> str:
    """Returns columns in words, such as `"x float32 (100,)"`.

    Example:
    >>> describe((Column("x", np.dtype("float32"), (100,)),))
    'x float32 (100,)'
    """
    return ", ".join(
        f"{one.name} {one.dtype} {'sequences of ' if one.is_ragged else ''}{one.shape}"
        f"{_describe_categories(one)}"
        for one in schema
    )


def _describe_categories(column: Column) -> str:
    if column.categories is None:
        return ""
    some = ", ".join(column.categories[:_MOST_SHOWN])
    return f" for {some}{', ...' if len(column.categories) > _MOST_SHOWN else ''}"


def _all_groups(parts: Sequence[Source], edges: Sequence[int]) -> npt.NDArray[np.int64] | None:
    if all(part.groups is None for part in parts):
        return None
    each = [
        first + (np.array([0, part.num_rows]) if part.groups is None else part.groups)[:-1]
        for part, first in zip(parts, edges, strict=False)
    ]
    return np.concatenate([*each, edges[-1:]])
