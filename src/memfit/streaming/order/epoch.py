"""The order of rows in every epoch: a pure function of seed, epoch and number of shards.

Blocks of rows are permuted over all the data. Neighbours in that order are read together as a
window, and the rows of a window are permuted again. Batches cut the stream of rows that results,
so that a batch number is all that it takes to go on from there.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
# Which stream of random numbers: blocks have the first, windows those that follow.
_BLOCKS = 0


@dataclass(frozen=True, slots=True)
class Window:
    """Rows that are in memory together.

    Attributes:
        start: Where its first row stands in the stream.
        ranges: The rows of the source that it holds, as pairs of start and stop, ascending.
        num_rows: How many these are.
        permutation: Which of its rows comes first, second and so on; `None` if as they are read.
    """

    start: int
    ranges: tuple[tuple[int, int], ...]
    num_rows: int
    permutation: npt.NDArray[np.intp] | None


@dataclass(frozen=True, slots=True)
class Epoch:
    """All rows of one epoch in their order.

    Attributes:
        starts: First row of each chunk of the data, in the order of the stream.
        stops: The row after its last.
        first_chunks: First chunk of each window, and the number of chunks.
        first_rows: Where each window begins in the stream, and the number of rows.
        key: What the permutations of its windows are made from; `None` if rows stay as they are.
        batch_size: Rows of a batch.
        drops_partial: Whether a last batch with fewer rows is left out.
    """

    starts: Rows
    stops: Rows
    first_chunks: Rows
    first_rows: Rows
    key: tuple[int, ...] | None
    batch_size: int
    drops_partial: bool = False

    @property
    def num_windows(self) -> int:
        """How many windows it has."""
        return len(self.first_chunks) - 1

    @property
    def largest_window(self) -> int:
        """The most rows that a window has."""
        return int(np.diff(self.first_rows).max())

    def find_window(self, row: int) -> int:
        """Returns the window that holds the row at this place of the stream."""
        return int(np.searchsorted(self.first_rows, row, side="right")) - 1

    def find_start(self, batch: int) -> int:
        """Returns where a batch begins in the stream."""
        return batch * self.batch_size

    def sizes(self, first: int, at_a_time: int) -> Iterator[int]:
        """Gives the rows of each run of so many batches, from the batch `first` on.

        A last batch with fewer rows comes by itself.
        """
        num_whole, rest = divmod(int(self.first_rows[-1]), self.batch_size)
        for batch in range(first, num_whole, at_a_time):
            yield min(at_a_time, num_whole - batch) * self.batch_size
        if rest and not self.drops_partial:
            yield rest

    def ranges(self, index: int) -> tuple[tuple[int, int], ...]:
        """Returns the rows of the source that a window holds, ascending."""
        first, stop = self.first_chunks[index], self.first_chunks[index + 1]
        starts, stops = self.starts[first:stop], self.stops[first:stop]
        if self.key is not None:
            by_place = np.argsort(starts)
            starts, stops = starts[by_place], stops[by_place]
        return _joined(starts, stops)

    def window(self, index: int) -> Window:
        """Returns what is in a window."""
        num_rows = int(self.first_rows[index + 1] - self.first_rows[index])
        permutation = (
            None if self.key is None else randomness(self.key, 1 + index).permutation(num_rows)
        )
        return Window(int(self.first_rows[index]), self.ranges(index), num_rows, permutation)


@dataclass(frozen=True, slots=True)
class Order:
    """How rows are cut into blocks, windows and batches, and in which order they come.

    Attributes:
        edges: Block `b` is the rows from `edges[b]` to `edges[b + 1]`.
        window_rows: The most rows of a window that holds more than one block.
        batch_size: Rows of a batch.
        seed: What the order is made from; `None` for the order of the source.
        shard: Which part of the rows is given, of `num_shards`.
        num_shards: How many parts there are; a row is in one of them, in every epoch.
        drops_partial: Whether a last batch with fewer rows is left out.
        costs: How many rows of average size each block takes the room of; as many as it has if
            `None`.

    Example:
    >>> order = Order(equal_edges(10, 4), window_rows=8, batch_size=5, seed=None)
    >>> order.num_batches
    2
    """

    edges: Rows
    window_rows: int
    batch_size: int
    seed: int | None = None
    shard: int = 0
    num_shards: int = 1
    drops_partial: bool = False
    costs: npt.NDArray[np.float64] | None = None

    @property
    def num_rows(self) -> int:
        """How many rows an epoch has; of shards no two differ by more than one."""
        first, stop = self._places()
        return stop - first

    @property
    def num_batches(self) -> int:
        """How many batches an epoch has."""
        if self.drops_partial:
            return self.num_rows // self.batch_size
        return -(-self.num_rows // self.batch_size)

    def epoch(self, number: int) -> Epoch:
        """Returns the order of all rows in an epoch."""
        starts, stops = self.edges[:-1], self.edges[1:]
        costs = stops - starts if self.costs is None else self.costs
        key = None if self.seed is None else (self.seed, number, self.num_shards, self.shard)
        if key is not None:
            # All shards deal from the same order of blocks.
            blocks = randomness(key[:2], _BLOCKS).permutation(len(starts))
            starts, stops, costs = starts[blocks], stops[blocks], costs[blocks]
        each = costs / (stops - starts)
        starts, stops, kept = _cut_out(starts, stops, *self._places())
        sizes = stops - starts
        first_chunks = _pack(np.cumsum(sizes * each[kept]), self.window_rows)
        first_rows = np.concatenate(([0], np.cumsum(sizes)))[first_chunks]
        return Epoch(
            starts, stops, first_chunks, first_rows, key, self.batch_size, self.drops_partial
        )

    def _places(self) -> tuple[int, int]:
        """The part of all rows, in the order of their blocks, that the shard has.

        All shards have as many batches. Where some would have one more, for a single row, these
        rows are left out.
        """
        total = int(self.edges[-1])
        least = total // self.num_shards
        if self.drops_partial or least % self.batch_size == 0:
            total = least * self.num_shards
        first = total * self.shard // self.num_shards
        return first, total * (self.shard + 1) // self.num_shards


def equal_edges(num_rows: int, block_rows: int) -> Rows:
    """Returns the edges of blocks of one size; the last may be smaller.

    Example:
    >>> equal_edges(10, 4).tolist()
    [0, 4, 8, 10]
    """
    return np.append(np.arange(0, num_rows, block_rows, dtype=np.int64), num_rows)


def randomness(key: tuple[int, ...], stream: int) -> np.random.Generator:
    """Random numbers of their own for every key and stream."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence([*key, stream])))


def _cut_out(
    starts: Rows, stops: Rows, first: int, stop: int
) -> tuple[Rows, Rows, npt.NDArray[np.bool_]]:
    """Keeps the rows from place `first` to `stop`; blocks at both ends may be cut.

    Returns:
        Where each chunk starts and stops, and which of the blocks they are.
    """
    ends = np.cumsum(stops - starts)
    begins = ends - (stops - starts)
    kept = (ends > first) & (begins < stop)
    starts = (starts + np.maximum(first - begins, 0))[kept]
    stops = (stops - np.maximum(ends - stop, 0))[kept]
    return starts, stops, kept


def _pack(ends: npt.NDArray[Any], window_rows: int) -> Rows:
    """Puts as many neighbours into each window as fit, at least one."""
    num_rows = math.ceil(ends[-1]) if len(ends) else 0
    # Windows of about the same size: a small one at the end would mix badly.
    share = -(-num_rows // math.ceil(num_rows / window_rows)) if num_rows else 0
    firsts = [0]
    while firsts[-1] < len(ends):
        before = ends[firsts[-1] - 1] if firsts[-1] else 0
        at = int(np.searchsorted(ends, before + share, side="left")) + 1
        if at > firsts[-1] + 1 and at <= len(ends) and ends[at - 1] - before > window_rows:
            at -= 1
        firsts.append(min(max(at, firsts[-1] + 1), len(ends)))
    return np.array(firsts, dtype=np.int64)


def _joined(starts: npt.NDArray[Any], stops: npt.NDArray[Any]) -> tuple[tuple[int, int], ...]:
    """Ranges that touch become one: fewer, larger reads."""
    is_first = np.append(True, starts[1:] != stops[:-1])
    is_last = np.append(is_first[1:], True)
    return tuple(zip(starts[is_first].tolist(), stops[is_last].tolist(), strict=True))
