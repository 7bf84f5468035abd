"""Training steps that run a batch in micro-batches: one module a framework.

All of them do what Keras's own step does, micro-batch after micro-batch, and update the weights
once. What a micro-batch counts for is written once, in `loss_weights.py`; what its batch is made
of in `batch_parts.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(slots=True)
class MicroBatches:
    """How batches are cut.

    Attributes:
        size: Samples in a micro-batch; the last micro-batch of a batch may have fewer. `resize`
            changes it.
        averaged: Variables, such as a BatchNormalization's moving statistics, that are to move
            once a batch, by the mean of what the micro-batches would have done.
        collects: Whether predictions are gathered and metrics see the whole batch at once.
        after_each: Called after each micro-batch, where Python runs between them: on torch.
        look_again: Called with this object where a step is built: what is to be averaged or
            collected may have changed since, by another `compile` or another `trainable`.
        check_training: Called where a step that trains is built; raises if the model may not be
            trained in this way any more.
    """

    size: int
    averaged: Sequence[Any] = ()
    collects: bool = False
    after_each: Callable[[], None] | None = None
    look_again: Callable[["MicroBatches"], None] | None = None
    check_training: Callable[[], None] | None = None
    _listeners: list[Callable[[int], None]] = field(default_factory=list)

    def renew(self, *, is_training: bool) -> None:
        """Looks again at what this is to do; each step calls it where it is built."""
        if is_training and self.check_training is not None:
            self.check_training()
        if self.look_again is not None:
            self.look_again(self)

    def of_size(self, size: int) -> "MicroBatches":
        """Returns the same for another size, which changes by itself."""
        return MicroBatches(size, self.averaged, self.collects, look_again=self.look_again)

    def resize(self, size: int) -> None:
        """Takes effect with the next batch."""
        if size == self.size:
            return
        self.size = size
        for tell in self._listeners:
            tell(size)

    def on_resize(self, tell: Callable[[int], None]) -> None:
        """Calls `tell` with every new size."""
        self._listeners.append(tell)


class MicroBatchSteps(Protocol):
    """What memfit needs of a framework to run a batch in micro-batches."""

    def make_train_step(self, model: Any, micro_batches: MicroBatches) -> Any:
        """Returns what stands in for `model.train_step`, to be bound to the model."""

    def make_test_step(self, model: Any, micro_batches: MicroBatches) -> Any:
        """Returns what stands in for `model.test_step`, to be bound to the model."""
