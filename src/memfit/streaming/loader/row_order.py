"""Which rows make which batch: what a source and the settings of a stream come to."""

import dataclasses

from memfit.errors import UsageError
from memfit.streaming.data.source import Source
from memfit.streaming.loader.map_batches import BatchMap
from memfit.streaming.loader.settings import LoaderSettings
from memfit.streaming.order.buckets import BucketOrder
from memfit.streaming.order.epoch import Order, equal_edges
from memfit.streaming.order.lengths import Lengths
from memfit.streaming.order.shuffle_plan import (
    DataFacts,
    Mixing,
    add_length_facts,
    gather_facts,
    share_of_rows,
)
from memfit.streaming.views.sequence_lengths import HasLengths


def find_facts(source: Source, settings: LoaderSettings, mapped: BatchMap | None) -> DataFacts:
    """Returns what must be known of a source to plan its mixing.

    Args:
        source: Where rows come from.
        settings: What a user asks for.
        mapped: What a function of theirs makes of batches.
    """
    lengths = _find_lengths(source, settings)
    batch_size = settings.most_rows if lengths is None else lengths.mean_batch
    data = gather_facts(source, batch_size, shuffles=settings.seed is not None)
    if lengths is not None:
        return add_length_facts(data, source, lengths, 0.0 if mapped is None else mapped.growth)
    if mapped is None:
        return data
    return dataclasses.replace(data, mapped_bytes=mapped.row_bytes)


def make_order(source: Source, settings: LoaderSettings, mixing: Mixing) -> Order | BucketOrder:
    """Returns the order of rows, with blocks and windows as planned.

    Raises:
        UsageError: No batch is left.
    """
    groups, lengths = source.groups, _find_lengths(source, settings)
    edges = equal_edges(source.num_rows, mixing.block_rows or 1) if groups is None else groups
    order = Order(
        edges,
        mixing.window_rows,
        settings.most_rows,
        settings.seed,
        settings.shard,
        settings.num_shards,
        drops_partial=settings.drop_remainder,
    )
    if lengths is not None:
        costs = lengths.share_out(edges, share_of_rows(source.schema))
        return BucketOrder(dataclasses.replace(order, costs=costs), lengths)
    if order.num_batches == 0:
        raise UsageError(
            f"No batch is left: drop_remainder=True, batch_size={settings.batch_size} and "
            f"{order.num_rows} rows. Make batch_size smaller, or keep the remainder."
        )
    return order


def _find_lengths(source: Source, settings: LoaderSettings) -> Lengths | None:
    if settings.tokens is None:
        return None
    lengths = source.lengths if isinstance(source, HasLengths) else None
    assert lengths is not None  # noqa: S101  # measured before a loader is made
    return lengths
