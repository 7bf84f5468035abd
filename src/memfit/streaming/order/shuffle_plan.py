"""How large blocks and windows may be within a budget, and how well they mix the rows.

`deff`, the design effect, is the variance of batch means on sorted data relative to independent
sampling: 1 is a perfect shuffle, and a batch tells as much as `batch_size / deff` independent rows.
"""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from memfit.errors import BudgetError
from memfit.streaming.data.reading import chunk_bytes
from memfit.streaming.data.source import Schema, Source, row_bytes
from memfit.streaming.order.lengths import Lengths
from memfit.units import format_size

# One window is used while the next is read.
_WINDOWS = 2
# What a row of a window takes besides its values: its place in the permutation.
_PLACE_BYTES = 8
# Batches in the hands of the training, of its framework, and being made.
_LEAST_HELD = 6
_MOST_HELD = 72
_HELD_SHARE = 0.25
# Edges, order and sums of blocks while an epoch is laid out.
_BLOCK_INDEX_BYTES = 64
_BLOCK_INDEX_SHARE = 0.125
# A thread, queues, open files.
_FIXED_BYTES = 3_000_000
# Smaller reads cost more in calls than in bytes.
_LEAST_BLOCK_BYTES = 16 * 1024
# Rows that need no mixing: windows inside a cache, in blocks that any disk reads at full speed.
_CACHED_WINDOW_BYTES = 6_000_000
_LARGE_BLOCK_BYTES = 512 * 1024
_GOOD_DEFF = 1.1
# Where rows of similar length make a batch: fewer batches in a window have more padding.
_SIMILAR_BATCHES = 200
# What a row takes besides its values: where its sequence begins; its place among similar ones.
_OFFSET_BYTES = 8
_SORTING_BYTES = 24


@dataclass(frozen=True, slots=True)
class DataFacts:
    """What must be known of data to plan for it.

    Attributes:
        num_rows: How many rows it has.
        row_bytes: What a row takes in memory, on average.
        batch_size: Rows of a batch.
        largest_group: Rows of its largest group, where it can only be read in groups.
        num_groups: How many groups it has.
        scratch_bytes: What reading takes besides the rows that are read.
        mapped_bytes: What a row takes in what a function makes of a batch, besides the batch.
        needs_mixing: Whether neighbours may be alike and must be parted.
        largest_batch_bytes: What the largest batch takes, and what is made of it, where batches
            have different numbers of rows and `batch_size` is their mean.
    """

    num_rows: int
    row_bytes: float
    batch_size: int
    largest_group: int | None = None
    num_groups: int | None = None
    scratch_bytes: int = 0
    mapped_bytes: float = 0.0
    needs_mixing: bool = True
    largest_batch_bytes: float | None = None

    @property
    def batch_bytes(self) -> float:
        """What a batch takes, and what is made of it."""
        if self.largest_batch_bytes is not None:
            return self.largest_batch_bytes
        return min(self.batch_size, self.num_rows) * (self.row_bytes + self.mapped_bytes)

    @property
    def least_block(self) -> int:
        """Rows of the smallest block that is worth a read."""
        if self.largest_group is not None:
            return self.largest_group
        return max(1, min(math.ceil(_LEAST_BLOCK_BYTES / self.row_bytes), self.num_rows))


@dataclass(frozen=True, slots=True)
class Mixing:
    """How rows are read and mixed within a budget.

    Attributes:
        block_rows: Rows that are read in one go; `None` for the groups of the source.
        window_rows: Rows that are mixed with one another.
        held_batches: Batches that may exist at a time.
        deff: The design effect that is expected on sorted data.
        planned_bytes: The most memory that is expected.
    """

    block_rows: int | None
    window_rows: int
    held_batches: int
    deff: float
    planned_bytes: int


def plan_mixing(data: DataFacts, budget_bytes: int) -> Mixing:
    """Returns the best mixing that a budget allows; what needs no mixing is read fast instead.

    Raises:
        BudgetError: The budget is too small for two of the smallest windows.
    """
    window_rows = _most_window_rows(data, budget_bytes)
    if window_rows < data.least_block:
        _refuse(data, budget_bytes)
    if not data.needs_mixing:
        enough = _rows_of(_CACHED_WINDOW_BYTES, data)
        if data.largest_batch_bytes is not None:
            enough = max(enough, _SIMILAR_BATCHES * data.batch_size)
        window_rows = max(min(window_rows, enough), data.least_block)
    window_rows = min(window_rows, data.num_rows)
    block_rows = _choose_block(data, window_rows, budget_bytes)
    return keep_mixing(data, budget_bytes, block_rows, window_rows)


def keep_mixing(
    data: DataFacts, budget_bytes: int, block_rows: int | None, window_rows: int
) -> Mixing:
    """Returns the mixing with blocks and windows of these sizes.

    Raises:
        BudgetError: The budget is too small for two such windows.
    """
    windows_bytes = _WINDOWS * window_rows * (data.row_bytes + _PLACE_BYTES)
    planned_bytes = math.ceil(windows_bytes + _other_bytes(data, budget_bytes))
    if planned_bytes > budget_bytes:
        raise BudgetError(
            f"The budget is too small to continue in the same order: two windows of {window_rows} "
            f"rows, as before, need about {format_size(planned_bytes)}. Received: "
            f"{format_size(budget_bytes)}. Give at least the budget that the state was made with."
        )
    return Mixing(
        block_rows=block_rows,
        window_rows=window_rows,
        held_batches=int(_held_bytes(data, budget_bytes) / data.batch_bytes),
        deff=predict_deff(data, block_rows, window_rows) if data.needs_mixing else 1.0,
        planned_bytes=planned_bytes,
    )


def predict_deff(data: DataFacts, block_rows: int | None, window_rows: int) -> float:
    """Returns the design effect on sorted data, where the rows of a block are alike.

    The mean of a window varies as that of its blocks, drawn from all blocks; a batch is drawn
    from the rows of the window.

    Example:
    >>> round(predict_deff(DataFacts(2_000_000, 400, 1024), 1024, 52 * 1024), 1)
    20.1
    """
    if window_rows >= data.num_rows:
        return 1.0
    if block_rows is None:
        block_rows = max(1, round(data.num_rows / (data.num_groups or 1)))
    num_blocks = data.num_rows / block_rows
    in_window = max(1.0, window_rows / block_rows)
    batch_size = min(data.batch_size, window_rows)
    between = batch_size / in_window * (num_blocks - in_window) / max(num_blocks - 1, 1)
    within = (1 - 1 / in_window) * (window_rows - batch_size) / max(window_rows - 1, 1)
    return max(1.0, between + within)


def least_budget_bytes(data: DataFacts) -> int:
    """Returns the smallest budget with which this data can be streamed, to a thousandth."""
    too_small, enough = 0, 1
    while _most_window_rows(data, enough) < data.least_block:
        too_small, enough = enough, 2 * enough
    while enough - too_small > enough // 1000 + 1:
        middle = (too_small + enough) // 2
        if _most_window_rows(data, middle) < data.least_block:
            too_small = middle
        else:
            enough = middle
    return enough


def _choose_block(data: DataFacts, window_rows: int, budget_bytes: int) -> int | None:
    """The largest block that mixes well: large reads are fast."""
    if data.largest_group is not None:
        return None
    if not data.needs_mixing:
        return min(_rows_of(_LARGE_BLOCK_BYTES, data), window_rows)
    most_blocks = _most_blocks(data, budget_bytes)
    smallest = max(data.least_block, math.ceil(data.num_rows / most_blocks))
    block_rows = min(_rows_of(_LARGE_BLOCK_BYTES, data), window_rows)
    while block_rows > smallest and predict_deff(data, block_rows, window_rows) > _GOOD_DEFF:
        block_rows = max(block_rows // 2, smallest)
    return max(1, min(block_rows, window_rows))


def _most_window_rows(data: DataFacts, budget_bytes: int) -> int:
    room_bytes = budget_bytes - _other_bytes(data, budget_bytes)
    return int(room_bytes / _WINDOWS / (data.row_bytes + _PLACE_BYTES))


def _other_bytes(data: DataFacts, budget_bytes: int) -> float:
    """What is not in windows."""
    return (
        _FIXED_BYTES
        + data.scratch_bytes
        + _held_bytes(data, budget_bytes)
        + _BLOCK_INDEX_BYTES * _most_blocks(data, budget_bytes)
    )


def _held_bytes(data: DataFacts, budget_bytes: int) -> float:
    share = _HELD_SHARE * (budget_bytes - _FIXED_BYTES - data.scratch_bytes)
    return min(max(share, _LEAST_HELD * data.batch_bytes), _MOST_HELD * data.batch_bytes)


def _most_blocks(data: DataFacts, budget_bytes: int) -> float:
    if data.num_groups is not None:
        return data.num_groups
    affordable = _BLOCK_INDEX_SHARE * budget_bytes / _BLOCK_INDEX_BYTES
    return max(1.0, min(data.num_rows / data.least_block, affordable))


def _rows_of(size_bytes: int, data: DataFacts) -> int:
    return max(1, int(size_bytes / data.row_bytes))


def _refuse(data: DataFacts, budget_bytes: int) -> None:
    unit = "row group" if data.largest_group is not None else "block"
    block_bytes = data.least_block * data.row_bytes
    raise BudgetError(
        f"The budget is too small for this data. Received: {format_size(budget_bytes)}. "
        f"The smallest that works is {format_size(least_budget_bytes(data) * 1.01)}: two windows "
        f"of one {unit} ({data.least_block} rows, {format_size(block_bytes)}) and {_LEAST_HELD} "
        f"batches of {format_size(data.batch_bytes)}. Give that, or make batches smaller."
    )


def gather_facts(source: Source, batch_size: int, *, shuffles: bool) -> DataFacts:
    """Returns what must be known of a source to plan for it."""
    groups = source.groups
    num_ragged = sum(one.is_ragged for one in source.schema)
    # Sequences are read chunk by chunk; groups have counted theirs.
    size_bytes = row_bytes(source.schema)
    chunks_bytes = 0
    if num_ragged and groups is None:
        chunks_bytes = round(min(chunk_bytes(source), source.num_rows * size_bytes))
    return DataFacts(
        num_rows=source.num_rows,
        row_bytes=size_bytes + _OFFSET_BYTES * num_ragged,
        batch_size=batch_size,
        largest_group=None if groups is None else int(np.diff(groups).max()),
        num_groups=None if groups is None else len(groups) - 1,
        scratch_bytes=source.scratch_bytes + chunks_bytes,
        needs_mixing=shuffles and not source.is_shuffled,
    )


def add_length_facts(data: DataFacts, source: Source, lengths: Lengths, growth: float) -> DataFacts:
    """Returns what is known of data besides, where it is known how long sequences are.

    Args:
        data: What is known of it.
        source: Where rows come from.
        lengths: How long they are.
        growth: What a function makes of a batch, relative to the batch.
    """
    schema = source.schema
    steps = [dataclasses.replace(one, mean_length=None) for one in schema if one.is_ragged]
    alike = tuple(one for one in schema if not one.is_ragged)
    batch_bytes = lengths.largest_batch_bytes(row_bytes(tuple(steps)), row_bytes(alike))
    largest = data.largest_group
    if source.groups is not None:
        largest = math.ceil(lengths.share_out(source.groups, share_of_rows(schema)).max())
    return dataclasses.replace(
        data,
        row_bytes=data.row_bytes + _SORTING_BYTES,
        largest_group=largest,
        largest_batch_bytes=(1 + growth) * batch_bytes,
    )


def share_of_rows(schema: Schema) -> float:
    """Returns which part of all bytes is the same for every row, however long it is."""
    alike = tuple(one for one in schema if not one.is_ragged)
    return row_bytes(alike) / row_bytes(schema)
