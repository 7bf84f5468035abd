"""How long sequences are, in a byte for each, and how many of them a number of tokens has room for.

Lengths are rounded up to a grid with eight steps from each power of two to the next. So rows of one
step can be mixed with one another, and batches have few shapes, which matters where each shape is
compiled.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memfit.streaming.order.epoch import Rows

# Steps of the grid from a power of two to the next; below twice as many it has every length.
_STEPS = 8
# Rows that are looked at in one go.
_CHUNK_ROWS = 131_072
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
