"""What must be known of a source to plan for it."""

import dataclasses
import math

import numpy as np

from memfit.streaming.data.reading import piece_bytes
from memfit.streaming.data.source import Schema, Source, row_bytes
from memfit.streaming.order.lengths import Lengths
from memfit.streaming.order.shuffle_plan import Data

# What a row takes besides its values: where its sequence begins; its place among similar ones.
_OFFSET_BYTES = 8
_SORTING_BYTES = 24


def know(source: Source, batch_size: int, *, shuffles: bool) -> Data:
    """Returns what must be known of a source to plan for it."""
    groups = source.groups
    num_ragged = sum(one.is_ragged for one in source.schema)
    # Sequences are read piece by piece; groups have counted theirs.
    size_bytes = row_bytes(source.schema)
    pieces_bytes = 0
    if num_ragged and groups is None:
        pieces_bytes = round(min(piece_bytes(source), source.num_rows * size_bytes))
    return Data(
        num_rows=source.num_rows,
        row_bytes=size_bytes + _OFFSET_BYTES * num_ragged,
        batch_size=batch_size,
        largest_group=None if groups is None else int(np.diff(groups).max()),
        num_groups=None if groups is None else len(groups) - 1,
        scratch_bytes=source.scratch_bytes + pieces_bytes,
        needs_mixing=shuffles and not source.is_shuffled,
    )


def know_lengths(data: Data, source: Source, lengths: Lengths, growth: float) -> Data:
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
