"""How batches from disk get into Keras's `fit`, the fastest way for each framework."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from memfit.errors import UsageError


class Begin(Protocol):
    """Begins a pass over batches; what it gives are inputs, targets and weights."""

    def __call__(
        self, *, at_a_time: int = 1, ahead: int = 0, count: Callable[[], int] | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """Gives the batches of the next epoch.

        Args:
            at_a_time: How many batches to give as one, row after row.
            ahead: How many batches the one who asks keeps ready and has not used.
            count: Tells how many batches of the pass were used, where that is not known from
                what was asked for.
        """


@dataclass(frozen=True, slots=True)
class Spec:
    """What an array of a batch is like.

    Attributes:
        shape: Its shape; `None` for sizes that differ from batch to batch.
        dtype: The type of its values.
    """

    shape: tuple[int | None, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Fed:
    """What is fed.

    Attributes:
        begin: Begins a pass.
        specs: A `Spec` in the place of each array of a batch.
        batch_size: Rows of a batch; the last may have fewer.
        num_batches: Batches of an epoch.
        at_a_time: How many batches may be given as one within the budget.
    """

    begin: Begin
    specs: tuple[Any, ...]
    batch_size: int
    num_batches: int
    at_a_time: int


class Feeds(Protocol):
    """What a framework takes batches from. Modules of this package have this shape."""

    def make_feed(self, fed: Fed) -> Any:
        """Returns what Keras asks a data adapter for; a pass begins with its first batch."""


def refuse_text(fed: Fed, framework: str) -> None:
    """Raises if batches hold text, for frameworks that have no tensors of it.

    Raises:
        UsageError: They do.
    """
    text = next((one for one in _find_specs(fed.specs) if one.dtype.kind in "US"), None)
    if text is not None:
        raise UsageError(
            f"{framework} takes numbers only, and this stream gives text ({text.dtype}). Turn it "
            'into numbers on the way: lookup = keras.layers.StringLookup(vocabulary=["red", ...]) '
            "and memfit.stream(..., map=lambda x, y: (lookup(x), y)). Columns that are not needed "
            "can be left out with columns=[...]."
        )


def _find_specs(tree: Any) -> Iterator[Spec]:
    if isinstance(tree, Spec):
        yield tree
        return
    for one in tree.values() if isinstance(tree, dict) else tree:
        yield from _find_specs(one)
