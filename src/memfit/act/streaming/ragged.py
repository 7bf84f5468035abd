"""Rows that are sequences of different length: all steps in one array, and where each begins."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


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
        moved = np.repeat(self.offsets[rows] - offsets[:-1], lengths)
        return Ragged(self.values[np.arange(offsets[-1]) + moved], offsets)

    def pad(self) -> npt.NDArray[Any]:
        """Returns a dense array as long as the longest sequence, with zeros (or "") after each."""
        lengths = self.lengths
        longest = int(lengths.max(initial=0))
        padded = np.zeros((len(self), longest, *self.values.shape[1:]), self.values.dtype)
        padded[np.arange(longest) < lengths[:, None]] = self.values[: self.offsets[-1]]
        return padded


def concatenate(parts: Sequence[Ragged]) -> Ragged:
    """Returns the sequences of all parts."""
    if len(parts) == 1:
        return parts[0]
    lengths = np.concatenate([one.lengths for one in parts])
    values = np.concatenate([one.values[: one.offsets[-1]] for one in parts])
    return Ragged(values, np.concatenate(([0], np.cumsum(lengths))))
