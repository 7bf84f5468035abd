"""How long the sequences of all rows are, read once: what it takes to put similar ones together."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from memfit.errors import UsageError
from memfit.messages import show_progress
from memfit.streaming.data.ragged import Ragged
from memfit.streaming.data.reading import read_chunks
from memfit.streaming.data.source import Array, Ranges, Source, Values, read_into
from memfit.streaming.order.lengths import Lengths, make_grid
from memfit.streaming.views.subset import RowSubset, split_rows

# Rows whose lengths are asked for in one go.
_CHUNK_ROWS = 65_536
# More steps than any sequence has; up to here a step of the grid is a byte.
_LONGEST = 1 << 31
# What a batch takes in the index of an epoch, and a step while it is looked for in a window.
_BATCH_INDEX_BYTES = 48
_STEP_INDEX_BYTES = 24

Counts = npt.NDArray[np.int64]


@runtime_checkable
class ReadsLengths(Protocol):
    """A source that can tell how long sequences are without reading them."""

    def read_lengths(self, start: int, stop: int) -> Mapping[str, Counts]:
        """Returns how long the sequences of some rows are, for every column of sequences."""


@runtime_checkable
class HasLengths(Protocol):
    """A source that may have the lengths of all its sequences."""

    lengths: Lengths | None
    """`None` if not requested."""


class RowsWithLengths:
    """A source of which it is known how long sequences are.

    Args:
        source: The rows.
        lengths: How long they are.
        mean_lengths: Steps of a sequence on average, for every column of sequences.
    """

    def __init__(self, source: Source, lengths: Lengths, mean_lengths: Mapping[str, float]) -> None:
        self._source = source
        self._mean_lengths = mean_lengths
        self.lengths = lengths
        self.schema = tuple(
            dataclasses.replace(one, mean_length=mean_lengths[one.name]) if one.is_ragged else one
            for one in source.schema
        )
        self.num_rows = source.num_rows
        self.groups = source.groups
        self.is_shuffled = source.is_shuffled
        num_batches = self.num_rows / lengths.mean_batch
        self.scratch_bytes = round(
            source.scratch_bytes
            + lengths.steps.nbytes
            + _BATCH_INDEX_BYTES * num_batches
            + _STEP_INDEX_BYTES * lengths.tokens
        )
        self.fingerprint = source.fingerprint
        self.check = source.check

    def read(self, start: int, stop: int) -> Mapping[str, Values]:
        """Returns rows."""
        return self._source.read(start, stop)

    def read_into(self, ranges: Ranges, into: Mapping[str, Array]) -> None:
        """Reads rows into arrays."""
        read_into(self._source, ranges, into)

    def split(self, share: float) -> tuple["RowsWithLengths", "RowsWithLengths"]:
        """Returns two sides without a row in common: those of the source itself."""
        first, second = (self._of(part) for part in split_rows(self._source, share))
        return first, second

    def _of(self, part: Source) -> "RowsWithLengths":
        assert isinstance(part, RowSubset)  # noqa: S101  # what is measured does not split itself
        steps = part.take(self.lengths.steps)
        return RowsWithLengths(
            part, dataclasses.replace(self.lengths, steps=steps), self._mean_lengths
        )


def measure(source: Source, tokens: int) -> RowsWithLengths:
    """Returns a source that has the lengths of all its sequences.

    A row with several sequences is as long as the longest of them.

    Raises:
        UsageError: It has no sequences, or one that is longer than a batch may be.
    """
    names = [one.name for one in source.schema if one.is_ragged]
    if not names:
        raise UsageError(
            f"tokens is for sequences that differ in length. Received: tokens={tokens} and data "
            "whose rows all have the same shape. Give batch_size=32 or so instead."
        )
    grid = make_grid(min(tokens, _LONGEST))
    steps = np.empty(source.num_rows, np.uint8)
    totals = dict.fromkeys(names, 0)
    longest_row, longest, num_longer, at = 0, 0, 0, 0
    with show_progress(source.num_rows, "measuring sequences") as tell:
        for found in _read_all(source, names):
            lengths = np.max(list(found.values()), axis=0)
            stop = at + len(lengths)
            steps[at:stop] = np.searchsorted(grid, np.minimum(lengths, grid[-1]))
            if lengths.max() > longest:
                longest_row, longest = at + int(lengths.argmax()), int(lengths.max())
            num_longer += int((lengths > tokens).sum())
            for name in names:
                totals[name] += int(found[name].sum())
            at = stop
            tell(len(lengths))
    if num_longer:
        raise UsageError(
            f"{num_longer} of {source.num_rows} rows are longer than tokens={tokens}, and would "
            f"not fit into a batch alone: the longest, row {longest_row}, has {longest} steps. "
            f"Give tokens={longest} or more, or cut the sequences where they are written."
        )
    # The longest rows are padded to their own length, not beyond.
    grid = np.append(grid[grid < longest], max(longest, 1))
    means = {name: total / source.num_rows for name, total in totals.items()}
    return RowsWithLengths(source, Lengths(steps, grid, tokens), means)


def _read_all(source: Source, names: list[str]) -> Iterator[Mapping[str, Counts]]:
    """Gives the lengths of all rows, not too many at a time."""
    if isinstance(source, ReadsLengths):
        for start in range(0, source.num_rows, _CHUNK_ROWS):
            yield source.read_lengths(start, min(start + _CHUNK_ROWS, source.num_rows))
        return
    for _, values in read_chunks(source, [(0, source.num_rows)]):
        yield {name: _lengths(values[name]) for name in names}


def _lengths(values: Values) -> Counts:
    assert isinstance(values, Ragged)  # noqa: S101  # the schema says so
    return values.lengths
