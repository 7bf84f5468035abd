"""Steps that can be run again: one module a framework.

A step runs in two phases. The first computes gradients, losses and metrics; weights and optimizer
are only read, and of what little it does change there is a copy. The second updates weights and
optimizer in place. Before it begins, the memory that it needs is asked for and given back; if that
fails, what it changes is kept in a file first. So a failure leaves everything as it was.
"""

from collections.abc import Callable
from typing import Any, Protocol

from memfit.backends.micro_batches import MicroBatches
from memfit.backends.out_of_memory import is_out_of_memory

# The size of a micro-batch that holds any batch; TensorFlow counts in 32 bits.
WHOLE = 2**31 - 1
# Times the weights: what Keras's Adam computes on the way (4), and gradients that are clipped.
UPDATE_TAKES = 5


class RetriedStep(Protocol):
    """One step on one batch, which may be tried again."""

    @property
    def num_samples(self) -> int:
        """How many samples the batch has."""

    def check_cuttable(self) -> None:
        """Raises `UsageError` if this batch cannot be cut, and says why."""

    def learn(self, size: int) -> None:
        """Runs the first phase, in micro-batches of `size` samples."""

    def has_room(self) -> bool:
        """Returns whether the memory that the second phase needs can be had now."""

    def keep(self) -> None:
        """Writes what the second phase changes into a file."""

    def update(self) -> None:
        """Runs the second phase."""

    def undo(self) -> bool:
        """Puts everything back; returns whether it could."""

    def pause(self, call: Callable[[Any], object]) -> None:
        """Calls with the batch; inside of it the model can be trained by others."""


Run = Callable[[RetriedStep], None]


class RetrySteps(Protocol):
    """What memfit needs of a framework to run steps again."""

    def make_function(
        self, model: Any, micro_batches: MicroBatches, run: Run, *, is_training: bool
    ) -> Any:
        """Returns what stands in for `model.train_function` or `model.test_function`.

        It takes each batch from the iterator once and calls `run` with the attempt at it.

        Args:
            model: A model that has Keras's own steps.
            micro_batches: How batches are cut, but for the size.
            run: Gets an attempt through, or raises.
            is_training: Whether the weights are updated.
        """

    def wait(self, variables: list[Any]) -> None:
        """Returns when the variables have their values; raises if there was no memory for one."""

    def release(self) -> None:
        """Gives back memory that the framework keeps for later."""


def can_allocate(allocate: Callable[[], object]) -> bool:
    """Returns whether there is memory for what `allocate` makes; it is let go at once."""
    try:
        allocate()
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return False
    return True
