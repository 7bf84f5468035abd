"""Batches of sequences of similar length: rows times the longest of them is at most `tokens`.

Lengths are rounded up to a grid with eight steps from each power of two to the next. So a row takes
one byte, rows of one step are mixed with one another, and batches have few shapes, which matters
where each shape is compiled. Every epoch has as many batches as every other, since Keras asks once.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memfit.plan.order import Epoch, Order, Rows, Window, randomness

# Steps of the grid from a power of two to the next; below twice as many it has every length.
_STEPS = 8
# Epochs that tell how many batches an epoch needs, and how far away those are that stand in for
# one that needs more.
_TRIED_EPOCHS = 3
_FAR = 1 << 31
# Which stream of random numbers: the order of the batches of a window.
_BATCHES = 0xBA7C
# Rows that are looked at in one go.
_CHUNK_ROWS = 1_000_000
_LEAST_LOOK = 64

Shares = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long the sequence of each row is, and how many tokens a batch may have.

    Attributes:
        steps: The step of the grid for every row.
        grid: The length of each step, ascending; the last is that of the longest row.
        tokens: The most that rows times the longest of a batch may be.

    Example:
    >>> Lengths(np.array([0, 0, 1], np.uint8), np.array([10, 50]), 100).cut([2, 1]).tolist()
    [2, 1]
    """

    steps: npt.NDArray[np.uint8]
    grid: Rows
    tokens: int

    @property
    def sizes(self) -> Rows:
        """Rows of a full batch whose longest row is at each step."""
        return self.tokens // self.grid

    @property
    def mean_batch(self) -> int:
        """Rows of a batch, on average."""
        num_batches = float((self._count_all() / self.sizes).sum())
        return max(1, round(len(self.steps) / num_batches))

    def largest_batch_bytes(self, step_bytes: float, row_bytes: float) -> float:
        """Returns what the largest batch takes.

        Args:
            step_bytes: What a step of a row's sequences takes.
            row_bytes: What a row takes besides.
        """
        counts = self._count_all()
        rows = np.minimum(self.sizes, np.cumsum(counts))
        return float((rows * (self.grid * step_bytes + row_bytes))[counts > 0].max())

    def count(self, ranges: Sequence[tuple[int, int]]) -> Rows:
        """Returns how many rows of these ranges are at each step."""
        return np.bincount(self.find(ranges), minlength=len(self.grid))

    def find(self, ranges: Sequence[tuple[int, int]]) -> npt.NDArray[np.uint8]:
        """Returns the steps of the rows of these ranges."""
        return np.concatenate([self.steps[start:stop] for start, stop in ranges])

    def cut(self, counts: npt.ArrayLike) -> Rows:
        """Returns the rows of each batch, for so many rows of each step, the longest first.

        Every batch is full but the last, which has the shortest rows.
        """
        batches: list[Rows] = []
        room = 0
        for number, size in zip(np.asarray(counts)[::-1], self.sizes[::-1], strict=True):
            left = int(number) - room
            room = max(-left, 0)
            if left > 0:
                num_batches = -(-left // int(size))
                batches.append(np.full(num_batches, size))
                room = num_batches * int(size) - left
        batches[-1][-1] -= room
        return np.concatenate(batches)

    def cut_in_order(self) -> Iterator[int]:
        """Gives the rows of each batch if rows stay as they are: as many as fit."""
        at, look = 0, _LEAST_LOOK
        while at < len(self.steps):
            longest = np.maximum.accumulate(self.grid[self.steps[at : at + look]])
            size = int((longest * np.arange(1, len(longest) + 1) <= self.tokens).sum())
            if size == look:  # there may be room for more
                look *= 2
                continue
            yield size
            at += size
            look = max(2 * size, _LEAST_LOOK)

    def share_out(self, edges: Rows, row_share: float) -> Shares:
        """Returns how much of the bytes of all rows each block has, in rows of average size.

        Args:
            edges: Block `b` is the rows from `edges[b]` to `edges[b + 1]`.
            row_share: Which part of the bytes is the same for every row.
        """
        mean_length = self._count_all() @ self.grid / len(self.steps)
        by_step = row_share + (1 - row_share) * self.grid / mean_length
        found = []
        most = max(1, _CHUNK_ROWS * (len(edges) - 1) // len(self.steps))
        for first in range(0, len(edges) - 1, most):
            some = edges[first : first + most + 1]
            values = by_step[self.steps[some[0] : some[-1]]]
            found.append(np.add.reduceat(values, some[:-1] - some[0]))
        return np.concatenate(found)

    def _count_all(self) -> Rows:
        chunks = range(0, len(self.steps), _CHUNK_ROWS)
        return sum(
            (self.count([(at, at + _CHUNK_ROWS)]) for at in chunks), np.zeros(len(self.grid), int)
        )


@dataclass(frozen=True, slots=True)
class BucketedEpoch:
    """All rows of one epoch in their order, and where batches begin.

    Attributes:
        rows: Which rows are in which window.
        lengths: How long they are.
        edges: Where each batch begins in the stream, and the number of rows.
        first_batches: The first batch of each window, and the number of batches; `None` if rows
            stay as they are.
    """

    rows: Epoch
    lengths: Lengths
    edges: Rows
    first_batches: Rows | None = None

    @property
    def num_windows(self) -> int:
        """How many windows it has."""
        return self.rows.num_windows

    @property
    def largest_window(self) -> int:
        """The most rows that a window has."""
        return self.rows.largest_window

    def find_window(self, row: int) -> int:
        """Returns the window that holds the row at this place of the stream."""
        return self.rows.find_window(row)

    def find_start(self, batch: int) -> int:
        """Returns where a batch begins in the stream."""
        return int(self.edges[batch])

    def sizes(self, first: int, at_a_time: int) -> Iterator[int]:
        """Gives the rows of each batch from `first` on; never several at a time."""
        del at_a_time  # they have different lengths
        return iter(np.diff(self.edges[first:]).tolist())

    def window(self, index: int) -> Window:
        """Returns what is in a window: rows of similar length are neighbours in its permutation."""
        window = self.rows.window(index)
        if self.first_batches is None or window.permutation is None or self.rows.key is None:
            return window
        first, stop = self.first_batches[index : index + 2]
        sizes = np.diff(self.edges[first : stop + 1])
        steps = self.lengths.find(window.ranges)[window.permutation]
        by_length = window.permutation[np.argsort(~steps, kind="stable")]
        # Batches were cut from the longest to the shortest, and then put into another order.
        order = _order_batches(self.rows.key, index, len(sizes))
        ends = np.empty(len(sizes), np.int64)
        ends[order] = sizes
        starts = (np.cumsum(ends) - ends)[order]
        moved = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        return dataclasses.replace(
            window, permutation=by_length[np.arange(window.num_rows) + moved]
        )


class Bucketed:
    """In which order rows come, and how they are cut into batches of similar length.

    Args:
        rows: Blocks and windows.
        lengths: How long rows are.

    Attributes:
        lengths: The same.
        num_batches: Batches of every epoch.
        num_rows: Rows of every epoch.
        seed: What the order is made from; `None` for the order of the source.
    """

    def __init__(self, rows: Order, lengths: Lengths) -> None:
        self._rows = rows
        self.lengths = lengths
        self.num_rows = rows.num_rows
        self.seed = rows.seed
        if self.seed is None:
            sizes = np.fromiter(lengths.cut_in_order(), np.int64)
            self._edges = _edges_of(sizes)
            self.num_batches = len(sizes)
        else:
            tried = (self._cut(rows.epoch(number)) for number in range(_TRIED_EPOCHS))
            self.num_batches = max(_count(one) for one in tried)

    def epoch(self, number: int) -> BucketedEpoch:
        """Returns the order of all rows in an epoch.

        One that needs more batches than there are is drawn again, and one that needs fewer has
        some cut in two.
        """
        if self.seed is None:
            return BucketedEpoch(self._rows.epoch(number), self.lengths, self._edges)
        for attempt in itertools.count():
            rows = self._rows.epoch(number + attempt * _FAR)
            cut = self._cut(rows)
            if _count(cut) <= self.num_batches:
                break
        assert rows.key is not None  # noqa: S101  # there is a seed
        cut = _fill(cut, self.num_batches)
        sizes = [one[_order_batches(rows.key, index, len(one))] for index, one in enumerate(cut)]
        first_batches = _edges_of(np.array([len(one) for one in sizes]))
        return BucketedEpoch(rows, self.lengths, _edges_of(np.concatenate(sizes)), first_batches)

    def _cut(self, rows: Epoch) -> list[Rows]:
        """The rows of all batches, window by window, the longest first."""
        counts = (self.lengths.count(rows.ranges(index)) for index in range(rows.num_windows))
        return [self.lengths.cut(one) for one in counts]


def make_grid(longest: int) -> Rows:
    """Returns the lengths to which others are rounded up; the last is `longest`.

    Example:
    >>> make_grid(40).tolist()[15:]
    [16, 18, 20, 22, 24, 26, 28, 30, 32, 36, 40]
    """
    found = list(range(1, 2 * _STEPS))
    start = 2 * _STEPS
    while start < longest:
        found += range(start, 2 * start, start // _STEPS)
        start *= 2
    return np.array([*(one for one in found if one < longest), longest])


def _order_batches(key: tuple[int, ...], index: int, num_batches: int) -> npt.NDArray[np.intp]:
    return randomness((*key, _BATCHES), index).permutation(num_batches)


def _edges_of(sizes: Rows) -> Rows:
    return np.concatenate(([0], np.cumsum(sizes)))


def _count(cut: Sequence[Rows]) -> int:
    return sum(len(one) for one in cut)


def _fill(cut: Sequence[Rows], num_batches: int) -> list[Rows]:
    """Cuts the largest batches in two, those of the first windows, until there are enough."""
    found = []
    missing = num_batches - _count(cut)
    for one in cut:
        wanted = min(len(one) + missing, int(one.sum()))
        missing -= wanted - len(one)
        found.append(_halve_largest(one, wanted))
    return found


def _halve_largest(sizes: Rows, wanted: int) -> Rows:
    while len(sizes) < wanted:
        largest = np.argsort(-sizes, kind="stable")[: wanted - len(sizes)]
        largest = np.sort(largest[sizes[largest] > 1])
        halves = sizes[largest] // 2
        sizes = sizes.copy()
        sizes[largest] -= halves
        sizes = np.insert(sizes, largest + 1, halves)
    return sizes
