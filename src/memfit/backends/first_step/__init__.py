"""A training that is held at its first batch: one module a framework.

Keras is about to run its first step. The batch that it would train on is taken from its own
iterator, something else is done with it, and then Keras trains on that very batch. So the data is
what `fit` really gives to the step, whatever kind it is, and nothing of it is lost or read twice.
"""

from collections.abc import Callable
from typing import Any, Literal, Protocol

# Gets a batch as the step gets it: `x`, or a tuple of `x`, `y` and perhaps weights. Returns `False`
# to be called with the next one, too.
OnFirst = Callable[[Any], bool | None]
Which = Literal["train", "test"]


class FirstStep(Protocol):
    """What memfit needs of a framework to hold a training at its first batch."""

    def hold(
        self,
        model: Any,
        on_first: OnFirst,
        *,
        which: Which = "train",
        on_begin: Callable[[], None] | None = None,
    ) -> Callable[[], None]:
        """Calls `on_first` with the first batch of a training, before the step runs on it.

        It is called again when the step was compiled anew, or a layer's `trainable` changed.
        Inside of it the model's variables have their values, the step is traced (so layers,
        losses, metrics and optimizer are built if the step builds them), and the model can be
        trained: such trainings are not held. What they leave in the model that belongs to a
        running `fit` is put back: its history, flags, metrics. Weights, optimizer and seeds are
        for the caller to put back. It must not write to the batch.

        What it raises reaches the caller of `fit`.

        Args:
            model: A compiled Keras model.
            on_first: What is called.
            which: Whether `fit` and `train_on_batch` are held, or `evaluate` and `test_on_batch`.
            on_begin: What is called when a training begins, before an epoch asks for its data.

        Returns:
            What undoes it.

        Raises:
            UsageError: The model cannot be held, and why.
        """

    def make_feed(self, batch: Any) -> Any:
        """Returns what Keras asks a data adapter for: this batch, once, and no copy of it."""
