"""`Stream`: the batches of a loader, as Keras, `tf.data` and torch take them."""

import contextlib
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import keras

from memfit.backends import load
from memfit.backends.feeds import Fed, Spec
from memfit.errors import UsageError
from memfit.keras_private.data import data_adapter_class, has_class_weight
from memfit.streaming.data.layout import unwrap
from memfit.streaming.data.source import Column
from memfit.streaming.loader.loader import Loader

# Stacks of batches that a feed has at a time, and single batches besides.
_STACKS = 4
_SINGLE = 5
_RAN_OUT = "Your input ran out of data"


class Stream(keras.utils.PyDataset, data_adapter_class()):  # type: ignore[misc]  # Keras ships no types
    """Batches from disk; made by `memfit.stream`.

    A loop over it is one epoch, and the next loop is the next epoch, also if the last was left
    early; a look at one batch, as in `next(iter(data))`, does not count.

    Args:
        loader: What gives the batches.
    """

    def __init__(self, loader: Loader) -> None:
        super().__init__()
        self._loader = loader
        self._quiet = contextlib.ExitStack()

    def __len__(self) -> int:
        """Returns the batches of a whole epoch, also while the rest of one is left to do."""
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        return (unwrap(batch) for batch in self._loader.run())

    def __getitem__(self, index: int) -> Any:
        """Returns a batch of the current epoch; does not move on."""
        return unwrap(self._loader.get(index))

    def state(self) -> dict[str, Any]:
        """Returns where the stream stands: under 1 kB, and JSON can keep it.

        Batches that a framework has made ready and no step has used do not count.
        """
        return self._loader.state().to_dict()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes to where `state()` was called: the next batch is the one that was next then.

        The next epoch of `fit` is the rest of that epoch.

        Raises:
            DataChangedError: The data is other data.
            UsageError: This is not a state, or it is one of a stream made with other arguments.
            BudgetError: The windows of that stream do not fit into this one's budget.
        """
        self._loader.restore(state)

    def split(self, share: float) -> tuple["Stream", "Stream"]:
        """Returns two streams: of `share` of the rows, and of all others.

        Which rows these are depends on the data alone. Each has half the budget.
        """
        first, second = self._loader.split(share)
        return Stream(first), Stream(second)

    def shard(self, index: int, count: int) -> "Stream":
        """Returns a stream of one of `count` parts of the rows, for one of as many processes.

        Each process makes the stream with the same arguments and takes another part. The parts of
        an epoch have no row in common, together all rows, and the same number of batches each.
        Where rows are left over for which some parts would need a batch more, these are left out
        of the epoch: fewer than `count`. With `shuffle` every epoch distributes the rows again.

        Args:
            index: Which part, from 0.
            count: How many parts there are.

        Raises:
            UsageError: There is no such part, or this is one already.
        """
        return Stream(self._loader.shard(index, count))

    @property
    def categories(self) -> dict[str, tuple[str, ...]]:
        """What the numbers of categorical columns stand for: 0 is the first, 1 the second."""
        schema = self._loader.source.schema
        return {one.name: one.categories for one in schema if one.categories is not None}

    def to_tf(self) -> Any:
        """Returns a `tf.data.Dataset`; every loop over it is the next epoch."""
        return load("feeds", "tensorflow").make_feed(self._fed())

    def to_torch(self) -> Any:
        """Returns a torch `DataLoader`; every loop over it is the next epoch."""
        return load("feeds", "torch").make_feed(self._fed())

    def __str__(self) -> str:
        return str(self._loader)

    # What Keras asks a data adapter for.

    def get_numpy_iterator(self) -> Iterator[tuple[Any, ...]]:
        """Gives the batches of the next epoch."""
        return self._loader.run()

    def get_jax_iterator(self) -> Any:
        """Gives the batches of the next epoch."""
        return load("feeds", "jax").make_feed(self._fed())

    get_tf_dataset = to_tf
    get_torch_dataloader = to_torch

    @property
    def num_batches(self) -> int:
        """Batches of an epoch."""
        _refuse_class_weight()
        return len(self)

    @property
    def batch_size(self) -> int | None:
        """Rows of a batch; `None` if batches differ."""
        return self._loader.settings.batch_size

    @property
    def has_partial_batch(self) -> bool:
        """Whether the last batch has fewer rows."""
        return self.partial_batch_size is not None

    @property
    def partial_batch_size(self) -> int | None:
        """Rows of the last batch, if these are fewer."""
        settings = self._loader.settings
        if settings.batch_size is None or settings.drop_remainder:
            return None
        return self._loader.num_rows % settings.batch_size or None

    def on_epoch_begin(self) -> None:
        """Called by Keras before the first batch."""
        if self._loader.progress.upcoming.batch > 0:
            # The rest of an epoch: Keras expects as many batches as in others, and would warn.
            self._quiet.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", _RAN_OUT)

    def on_epoch_end(self) -> None:
        """Called by Keras after an epoch, and after it has looked at a batch to build a model."""
        self._quiet.close()
        self._loader.progress.take_back()

    def _fed(self) -> Fed:
        loader = self._loader
        # A stack of padded sequences would be padded to the longest of all its batches; and a
        # user's own code is for one batch.
        is_ragged = any(one.is_ragged for one in loader.source.schema)
        at_a_time = max(1, (loader.mixing.held_batches - _SINGLE) // _STACKS)
        specs = loader.layout.arrange({one.name: _spec(one) for one in loader.source.schema})
        is_single = is_ragged or loader.mapped is not None
        return Fed(
            begin=loader.run,
            specs=specs if loader.mapped is None else loader.mapped.specs,
            batch_size=loader.settings.most_rows,
            num_batches=len(loader),
            at_a_time=1 if is_single else at_a_time,
        )


def _spec(column: Column) -> Spec:
    length = (None,) if column.is_ragged else ()
    return Spec((None, *length, *column.shape), column.dtype)


def _refuse_class_weight() -> None:
    """Raises if `fit` was called with `class_weight`: Keras forgets it, and trains without."""
    if has_class_weight(sys._getframe(2)):
        raise UsageError(
            "Keras ignores class_weight of fit() for a stream. Give it to the stream instead: "
            "memfit.stream(..., class_weight={0: 1.0, 1: 5.0})."
        )
