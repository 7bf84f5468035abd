"""Batches of sequences of similar length: rows times the longest of them is at most `tokens`.

Rows of a window are put together by their length, cut into batches, and these are permuted. Every
epoch has as many batches as every other, since Keras asks once.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memfit.streaming.order.epoch import Epoch, Order, Rows, Window, randomness
from memfit.streaming.order.lengths import Lengths

# Epochs that tell how many batches an epoch needs, and how far away those are that stand in for
# one that needs more.
_TRIED_EPOCHS = 3
_FAR = 1 << 31
# Which stream of random numbers: the order of the batches of a window.
_BATCHES = 0xBA7C


@dataclass(frozen=True, slots=True)
class BucketEpoch:
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
        for batch in range(first, len(self.edges) - 1):
            yield int(self.edges[batch + 1] - self.edges[batch])

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
        as_cut = np.empty(len(sizes), np.int64)
        as_cut[order] = sizes
        starts = (np.cumsum(as_cut) - as_cut)[order]
        moved = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        return dataclasses.replace(
            window, permutation=by_length[np.arange(window.num_rows) + moved]
        )


class BucketOrder:
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

    def epoch(self, number: int) -> BucketEpoch:
        """Returns the order of all rows in an epoch.

        One that needs more batches than there are is drawn again, and one that needs fewer has
        some cut in two.
        """
        if self.seed is None:
            return BucketEpoch(self._rows.epoch(number), self.lengths, self._edges)
        for attempt in itertools.count():
            rows = self._rows.epoch(number + attempt * _FAR)
            cut = self._cut(rows)
            if _count(cut) <= self.num_batches:
                break
        assert rows.key is not None  # noqa: S101  # there is a seed
        cut = _fill(cut, self.num_batches)
        sizes = [one[_order_batches(rows.key, index, len(one))] for index, one in enumerate(cut)]
        first_batches = _edges_of(np.array([len(one) for one in sizes]))
        return BucketEpoch(rows, self.lengths, _edges_of(np.concatenate(sizes)), first_batches)

    def _cut(self, rows: Epoch) -> list[Rows]:
        """The rows of all batches, window by window, the longest first."""
        counts = (self.lengths.count(rows.ranges(index)) for index in range(rows.num_windows))
        return [self.lengths.cut(one) for one in counts]


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
