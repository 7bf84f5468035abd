"""Everything about a stream that needs no Keras: its order, its passes, its state, its halves."""

import contextlib
import dataclasses
from collections.abc import Callable, Generator, Mapping
from typing import Any

from memfit.streaming.data.layout import Layout
from memfit.streaming.data.source import Source, row_bytes
from memfit.streaming.loader.batches import Batches
from memfit.streaming.loader.map_batches import BatchMap, count_rows, map_in_order
from memfit.streaming.loader.position import PassTracker, Position, State, read_state
from memfit.streaming.loader.row_order import find_facts, make_order
from memfit.streaming.loader.settings import LoaderSettings
from memfit.streaming.order.shuffle_plan import Mixing, keep_mixing, plan_mixing
from memfit.streaming.views.concatenate import describe
from memfit.streaming.views.subset import split_rows
from memfit.units import format_size


class Loader:
    """Gives batches of a source, epoch after epoch, and follows where it stands.

    Args:
        source: Where rows come from.
        layout: Which columns are inputs, targets and weights.
        settings: What a user asks for.
        mapped: What a function of theirs makes of batches.

    Raises:
        BudgetError: The budget is too small for this data.
    """

    def __init__(
        self,
        source: Source,
        layout: Layout,
        settings: LoaderSettings,
        mapped: BatchMap | None = None,
    ) -> None:
        self.source = source
        self.layout = layout
        self.settings = settings
        self.mapped = mapped
        self.progress = PassTracker()
        self._fingerprint: str | None = None
        facts = find_facts(source, settings, mapped)
        self._use(plan_mixing(facts, settings.budget_bytes))

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def num_rows(self) -> int:
        """Rows of an epoch."""
        return self._batches.order.num_rows

    def run(
        self, *, at_a_time: int = 1, ahead: int = 0, count: Callable[[], int] | None = None
    ) -> Generator[tuple[Any, ...], None, None]:
        """Gives the batches of the next epoch, or of the rest of one. See `feeds.Begin`."""
        current = self.progress.begin(len(self), ahead, count)
        try:
            with contextlib.closing(self._give(current.start, at_a_time)) as batches:
                for batch in batches:
                    current.given += -(-count_rows(batch) // self.settings.most_rows)
                    yield batch
        finally:
            current.is_open = False

    def get(self, index: int) -> tuple[Any, ...]:
        """Returns a batch of the current epoch, or of the next."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"There is no batch {index}: the stream has {len(self)} batches.")
        epoch = self.progress.position.epoch
        batch = self.layout.arrange(self._batches.get(epoch, index % len(self)))
        return batch if self.mapped is None else self.mapped.apply(batch, epoch, index % len(self))

    def state(self) -> State:
        """Returns where it stands."""
        if self._fingerprint is None:
            self._fingerprint = self.source.fingerprint()
        position = self.progress.position
        return State(
            epoch=position.epoch,
            batch=position.batch,
            seed=self.settings.seed,
            batch_size=self.settings.batch_size,
            drop_remainder=self.settings.drop_remainder,
            num_shards=self.settings.num_shards,
            block_rows=self.mixing.block_rows,
            window_rows=self.mixing.window_rows,
            num_rows=self.source.num_rows,
            fingerprint=self._fingerprint,
            tokens=self.settings.tokens,
        )

    def restore(self, value: Mapping[str, Any]) -> None:
        """Goes to where a stream of the same data stood; its order is taken over.

        Raises:
            UsageError: This is not a state, or it is one of a stream made with other arguments.
            DataChangedError: The data is other data.
            BudgetError: The windows of that stream do not fit into this one's budget.
        """
        state = read_state(value)
        state.check_against(self.state())
        facts = find_facts(self.source, self.settings, self.mapped)
        mixing = keep_mixing(facts, self.settings.budget_bytes, state.block_rows, state.window_rows)
        self.settings = dataclasses.replace(self.settings, seed=state.seed)
        self._use(mixing)
        self.progress.move_to(Position(state.epoch, state.batch))

    def split(self, share: float) -> tuple["Loader", "Loader"]:
        """Returns loaders of `share` of the rows and of the others, each with half the budget."""
        parts = split_rows(self.source, share)
        settings = dataclasses.replace(self.settings, budget_bytes=self.settings.budget_bytes // 2)
        first, second = (Loader(part, self.layout, settings, self.mapped) for part in parts)
        return first, second

    def shard(self, index: int, count: int) -> "Loader":
        """Returns a loader of one of `count` equal parts of the rows of every epoch.

        Raises:
            UsageError: There is no such part, this is one already, or batches differ in size.
        """
        settings = self.settings.take_shard(index, count, self.source.num_rows)
        return Loader(self.source, self.layout, settings, self.mapped)

    def __str__(self) -> str:
        settings, mixing, source = self.settings, self.mixing, self.source
        size = row_bytes(source.schema)
        position = self.progress.position
        order = "in the order of the source"
        if settings.seed is not None:
            order = f"shuffled with seed {settings.seed}, deff {mixing.deff:.2f}"
            order += "" if mixing.deff < 1.5 or source.is_shuffled else " (memfit.ingest: 1.00)"
        of_all = f", shard {settings.shard} of {settings.num_shards}"
        return (
            f"memfit stream: {source.num_rows:,} rows, {format_size(source.num_rows * size)}: "
            f"{describe(source.schema)}\n"
            f"{len(self):,} batches of {_describe_batch(settings)}, {order}"
            f"{of_all if settings.num_shards > 1 else ''}\n"
            f"windows of {mixing.window_rows:,} rows, {format_size(mixing.window_rows * size)}; "
            f"at most {format_size(mixing.planned_bytes)} of {format_size(settings.budget_bytes)}\n"
            f"next: epoch {position.epoch}, batch {position.batch}"
        )

    def _give(self, start: Position, at_a_time: int) -> Generator[tuple[Any, ...], None, None]:
        columns = self._batches.run(start.epoch, start.batch, at_a_time=at_a_time)
        with contextlib.closing(columns):
            batches = (self.layout.arrange(one) for one in columns)
            mapped = self.mapped
            if mapped is None:
                yield from batches
                return
            ahead = self.mixing.held_batches // 2
            yield from map_in_order(
                batches,
                lambda number, batch: mapped.apply(batch, start.epoch, start.batch + number),
                ahead,
            )

    def _use(self, mixing: Mixing) -> None:
        self.mixing = mixing
        order = make_order(self.source, self.settings, mixing)
        self._batches = Batches(self.source, order, mixing.held_batches)


def _describe_batch(settings: LoaderSettings) -> str:
    if settings.tokens is None:
        return str(settings.batch_size)
    return f"at most {settings.tokens:,} tokens"
