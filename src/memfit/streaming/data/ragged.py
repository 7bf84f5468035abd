"""Rows that are sequences of different length: all steps in one array, and where each begins."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

# Room for more steps than are expected: what is not used takes no memory.
_SPARE = 1.1


@dataclass(frozen=True, slots=True)
class Ragged:
    """Sequences one after another.

    Attributes:
        values: The steps of all sequences.
        offsets: Sequence `i` is `values[offsets[i]:offsets[i + 1]]`; the first is 0.

    Example:
    >>> Ragged(np.array([1, 2, 3]), np.array([0, 2, 3])).pad().tolist()
    [[1, 2], [3, 0]]
    """

    values: npt.NDArray[Any]
    offsets: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """How many steps each sequence has."""
        return np.diff(self.offsets)

    def take(self, rows: npt.NDArray[np.intp]) -> "Ragged":
        """Returns these sequences, in this order."""
        lengths = self.lengths[rows]
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        # Where each step lies: its place among the steps taken, moved to where its sequence is.
        places = np.repeat(self.offsets[rows] - offsets[:-1], lengths)
        places += np.arange(offsets[-1])
        return Ragged(self.values[places], offsets)

    def pad(self, grid: npt.NDArray[np.int64] | None = None) -> npt.NDArray[Any]:
        """Returns a dense array as long as the longest sequence, with zeros (or "") after each.

        Args:
            grid: Lengths to which the longest is rounded up.
        """
        lengths = self.lengths
        longest = int(lengths.max(initial=0))
        if grid is not None:
            longest = int(grid[np.searchsorted(grid, longest)])
        padded = np.zeros((len(self), longest, *self.values.shape[1:]), self.values.dtype)
        padded[np.arange(longest) < lengths[:, None]] = self.values[: self.offsets[-1]]
        return padded


class GrowingRagged:
    """Sequences that are added part by part, without a moment in which all are there twice.

    Args:
        dtype: The type of their values.
        shape: The shape of a step.
        mean_length: Steps of a sequence, as far as is known.
        num_rows: How many sequences there will be.
    """

    def __init__(
        self, dtype: np.dtype[Any], shape: tuple[int, ...], mean_length: float, num_rows: int
    ) -> None:
        self._offsets = np.zeros(num_rows + 1, np.int64)
        self._values = np.empty((int(_SPARE * mean_length * num_rows), *shape), dtype)
        self._num_rows = 0

    def add(self, part: Ragged) -> None:
        """Adds some sequences."""
        start = int(self._offsets[self._num_rows])
        stop = start + int(part.offsets[-1])
        if stop > len(self._values):
            larger = np.empty((int(_SPARE * stop), *self._values.shape[1:]), self._values.dtype)
            larger[:start] = self._values[:start]
            self._values = larger
        self._values[start:stop] = part.values[: part.offsets[-1]]
        rows = slice(self._num_rows + 1, self._num_rows + 1 + len(part))
        self._offsets[rows] = part.offsets[1:] + start
        self._num_rows += len(part)

    def finish(self) -> Ragged:
        """Returns all of them."""
        return Ragged(self._values[: self._offsets[self._num_rows]], self._offsets)


def concatenate(parts: Sequence[Ragged]) -> Ragged:
    """Returns the sequences of all parts."""
    if len(parts) == 1:
        return parts[0]
    lengths = np.concatenate([one.lengths for one in parts])
    values = np.concatenate([one.values[: one.offsets[-1]] for one in parts])
    return Ragged(values, np.concatenate(([0], np.cumsum(lengths))))
