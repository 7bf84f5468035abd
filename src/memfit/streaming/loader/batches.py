"""Batches of an epoch, from any of them on: the rows of windows, cut as an order says."""

import contextlib
import sys
from collections.abc import Generator

import numpy as np
import numpy.typing as npt

from memfit.streaming.data.ragged import Ragged, concatenate
from memfit.streaming.data.source import (
    Array,
    ChangesByEpoch,
    Column,
    Schema,
    Source,
    align,
    allocate,
    reserve,
)
from memfit.streaming.loader.windows import LoadedWindow, load_window, read_windows
from memfit.streaming.order.buckets import BucketEpoch, BucketOrder
from memfit.streaming.order.epoch import Epoch, Order

Columns = dict[str, Array]


class BufferPool:
    """Arrays for batches, in memory that is free again where there is some.

    Args:
        most_kept: How many arrays of a column are remembered.
    """

    def __init__(self, most_kept: int) -> None:
        self._most_kept = most_kept
        self._known: dict[tuple[str, int], list[Array]] = {}
        alone = [np.empty(1)]
        self._count_alone = sys.getrefcount(alone[0])

    def allocate(self, schema: Schema, num_rows: int) -> dict[str, Array]:
        """Returns arrays for so many rows of every column that is not ragged."""
        return {one.name: self._take(one, num_rows) for one in schema if not one.is_ragged}

    def _take(self, column: Column, num_rows: int) -> Array:
        shape = (num_rows, *column.shape)
        known = self._known.setdefault((column.name, num_rows), [])
        for at in range(len(known)):
            # Every array on this memory, however it was made, holds the one that owns it.
            if sys.getrefcount(known[at]) == self._count_alone:
                return align(known[at], shape, column.dtype)
        owner = reserve(shape, column.dtype)
        if len(known) < self._most_kept:
            known.append(owner)
        return align(owner, shape, column.dtype)


class Batches:
    """The batches of a source in an order.

    Args:
        source: Where rows come from.
        order: In which order, and how many a batch has.
        most_held: How many batches there may be at a time.
    """

    def __init__(self, source: Source, order: Order | BucketOrder, most_held: int = 1) -> None:
        self.source = source
        self.order = order
        self._grid = order.lengths.grid if isinstance(order, BucketOrder) else None
        # Memory is used again for batches of the same number of rows only.
        self._most_kept = most_held if self._grid is None else 0
        self._last_epoch: tuple[int, Epoch | BucketEpoch] | None = None
        self._last_window: tuple[int, int, LoadedWindow] | None = None

    def __len__(self) -> int:
        return self.order.num_batches

    def run(
        self, epoch: int, first: int = 0, *, at_a_time: int = 1
    ) -> Generator[Columns, None, None]:
        """Gives the batches of an epoch from `first` on, each in arrays of its own.

        Args:
            epoch: Which epoch, from 0.
            first: The batch to begin with.
            at_a_time: How many batches to give as one; a last one with fewer rows comes by itself.

        Raises:
            DataChangedError: The data is not as it was.
        """
        if first >= len(self):
            return
        self.source.check()
        self._last_window = None  # a look at single batches is over
        layout = self._lay_out(epoch)
        row = layout.find_start(first)
        windows = read_windows(self._source_in(epoch), layout, layout.find_window(row))
        pool = BufferPool(self._most_kept // at_a_time)
        with contextlib.closing(windows):
            loaded = next(windows)
            for size in layout.sizes(first, at_a_time):
                batch = _Unfinished(self.source.schema, size, pool)
                row += batch.add(loaded, row)
                while not batch.is_full:
                    loaded = next(windows)
                    row += batch.add(loaded, row)
                yield batch.finish(self._grid)

    def get(self, epoch: int, index: int) -> Columns:
        """Returns one batch; quick for batches in their order, since the last window is kept."""
        layout = self._lay_out(epoch)
        row = layout.find_start(index)
        batch = _Unfinished(self.source.schema, next(layout.sizes(index, 1)), BufferPool(0))
        while not batch.is_full:
            row += batch.add(self._load(epoch, layout, layout.find_window(row)), row)
        return batch.finish(self._grid)

    def _lay_out(self, epoch: int) -> Epoch | BucketEpoch:
        if self._last_epoch is None or self._last_epoch[0] != epoch:
            self._last_epoch = (epoch, self.order.epoch(epoch))
        return self._last_epoch[1]

    def _source_in(self, epoch: int) -> Source:
        source = self.source
        return (
            source.in_epoch(self.order.seed or 0, epoch)
            if isinstance(source, ChangesByEpoch)
            else source
        )

    def _load(self, epoch: int, layout: Epoch | BucketEpoch, index: int) -> LoadedWindow:
        if self._last_window is None or self._last_window[:2] != (epoch, index):
            self._last_window = None  # before memory for the next is taken
            window = layout.window(index)
            arrays = allocate(self.source.schema, window.num_rows)
            self._last_window = (epoch, index, load_window(self._source_in(epoch), window, arrays))
        return self._last_window[2]


class _Unfinished:
    """A batch while its rows are gathered, from as many windows as it takes."""

    def __init__(self, schema: Schema, num_rows: int, pool: BufferPool) -> None:
        self._schema = schema
        self._arrays = pool.allocate(schema, num_rows)
        self._ragged: list[dict[str, Ragged]] = []
        self._num_left = num_rows

    @property
    def is_full(self) -> bool:
        return self._num_left == 0

    def add(self, loaded: LoadedWindow, row: int) -> int:
        """Takes rows from place `row` of the stream on; returns how many."""
        start = row - loaded.window.start
        stop = min(loaded.window.num_rows, start + self._num_left)
        number = stop - start
        if number > 0:
            at = -self._num_left
            until = at + number or None
            loaded.gather_into(
                start, stop, {name: one[at:until] for name, one in self._arrays.items()}
            )
            if loaded.ragged:
                self._ragged.append(loaded.gather_ragged(start, stop))
        self._num_left -= number
        return number

    def finish(self, grid: npt.NDArray[np.int64] | None) -> Columns:
        """Returns the columns; sequences are padded to the longest among them, rounded up."""
        for one in self._schema:
            if one.is_ragged:
                parts = [part[one.name] for part in self._ragged]
                self._arrays[one.name] = concatenate(parts).pad(grid)
        return self._arrays
