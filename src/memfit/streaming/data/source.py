"""What a source of rows is: the one protocol behind which every kind of file stands."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from memfit.streaming.data.ragged import Ragged

Array = npt.NDArray[Any]
# The values of one column for some rows.
Values = Array | Ragged
# Rows from a start to a stop, several times.
Ranges = Sequence[tuple[int, int]]
_CACHE_LINE_BYTES = 64


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the data: what all its rows have in common.

    Attributes:
        name: Its name; no two columns of a source have the same.
        dtype: The type of its values, in the byte order of this machine.
        shape: The shape of a row; of a ragged column, that of one step of its sequences.
        mean_length: Steps of a sequence on average; `None` if all rows have the same shape.
        categories: What its values stand for: 0 is the first of these, 1 the second.

    Example:
    >>> Column("x", np.dtype("float32"), (100,)).row_bytes
    400.0
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...] = ()
    mean_length: float | None = None
    categories: tuple[str, ...] | None = None

    @property
    def is_ragged(self) -> bool:
        """Whether rows are sequences that differ in length."""
        return self.mean_length is not None

    @property
    def row_bytes(self) -> float:
        """What a row takes in memory, on average."""
        step_bytes = math.prod(self.shape) * self.dtype.itemsize
        return step_bytes * (1.0 if self.mean_length is None else self.mean_length)


Schema = tuple[Column, ...]


class Source(Protocol):
    """Rows that can be read by their number. Modules of `sources/` make objects of this shape.

    Values are given as they are: a NaN stays a NaN. `read` may be called by several threads at a
    time; what cannot bear that takes a lock of its own. Nothing is read when a source is made,
    except for what its attributes need.
    """

    @property
    def schema(self) -> Schema:
        """Its columns."""

    @property
    def num_rows(self) -> int:
        """How many rows it has, at least one."""

    @property
    def groups(self) -> npt.NDArray[np.int64] | None:
        """Edges of the parts that can only be read whole, such as row groups: 0 to `num_rows`.

        `None` if any range can be read at the cost of its bytes.
        """

    @property
    def is_shuffled(self) -> bool:
        """Whether the rows already are in a random order."""

    @property
    def scratch_bytes(self) -> int:
        """The most that the read of a group takes besides what it returns."""

    def fingerprint(self) -> str:
        """Returns a short text that is another one for other data, wherever the data lies.

        Cheap: made of sizes, headers and samples of the contents, not of all of them.
        """

    def check(self) -> None:
        """Raises `DataChangedError` if the data is not as it was when the source was made."""

    def read(self, start: int, stop: int) -> Mapping[str, Values]:
        """Returns the rows from `start` to `stop` of every column."""


@runtime_checkable
class ReadsInto(Protocol):
    """A source that can read into memory that is there already, which saves a copy."""

    def read_into(self, ranges: Ranges, into: Mapping[str, Array]) -> None:
        """Reads the rows of all ranges, one after another, into arrays.

        Args:
            ranges: Pairs of start and stop. They may be many and small.
            into: A contiguous array for every column; it may have room for more rows.
        """


@runtime_checkable
class Holds(Protocol):
    """A source that keeps memory between reads, such as the index of a file that stays open."""

    held_bytes: int
    """How much of its `scratch_bytes` this is."""


@runtime_checkable
class ChangesByEpoch(Protocol):
    """A source that has other rows in every epoch."""

    def in_epoch(self, seed: int, epoch: int) -> Source:
        """Returns the rows of an epoch: a pure function of seed and epoch."""


def joint_scratch_bytes(sources: Sequence[Source]) -> int:
    """Returns what sources take that are read one at a time, and stay open together."""
    held = [one.held_bytes if isinstance(one, Holds) else 0 for one in sources]
    reading = [one.scratch_bytes - each for one, each in zip(sources, held, strict=True)]
    return max(reading) + sum(held)


def read_into(source: Source, ranges: Ranges, into: Mapping[str, Array]) -> None:
    """Reads rows of a source without ragged columns into arrays."""
    if isinstance(source, ReadsInto):
        source.read_into(ranges, into)
        return
    at = 0
    for start, stop in ranges:
        for name, values in source.read(start, stop).items():
            into[name][at : at + stop - start] = values
        at += stop - start


def allocate(schema: Schema, num_rows: int) -> dict[str, Array]:
    """Returns arrays for so many rows of every column that is not ragged."""
    return {
        one.name: np.empty((num_rows, *one.shape), one.dtype) for one in schema if not one.is_ragged
    }


def reserve(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Returns memory in which `align` finds room for an array."""
    return np.empty(math.prod(shape) * dtype.itemsize + _CACHE_LINE_BYTES, np.uint8)


def align(memory: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Returns an array that begins at a cache line: frameworks take these without a copy."""
    offset = -memory.ctypes.data % _CACHE_LINE_BYTES
    size_bytes = math.prod(shape) * dtype.itemsize
    return memory[offset : offset + size_bytes].view(dtype).reshape(shape)


def row_bytes(schema: Schema) -> float:
    """Returns what a row of all columns takes in memory, on average."""
    return sum(one.row_bytes for one in schema)


def spread(number: int, most: int) -> list[int]:
    """Returns at most `most` of so many places, the first and the last among them, evenly spread.

    Example:
    >>> spread(100, 3)
    [0, 49, 99]
    """
    return [int(one) for one in np.linspace(0, number - 1, min(number, most))]
