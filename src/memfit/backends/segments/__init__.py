"""How each framework runs a segment of a model in micro-batches, forward and backward."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from memfit.backends.micro_batches import MicroBatches


@dataclass(frozen=True, slots=True)
class Given:
    """What a segment is given.

    Attributes:
        trainable: The values of its trainable variables.
        shared: Tensors that are the same for every micro-batch.
        state: Values that each micro-batch takes over from the one before, such as a seed.
        inputs: Tensors with the samples in their first axis.
    """

    trainable: Sequence[Any]
    shared: Sequence[Any]
    state: Sequence[Any]
    inputs: Sequence[Any]


@dataclass(frozen=True, slots=True)
class SegmentResult:
    """What a segment makes, of one micro-batch or of all of them.

    Attributes:
        samples: Tensors with a row for each sample.
        micro_batches: Tensors with a row for each micro-batch.
        state: The values of the state after it.
    """

    samples: list[Any]
    micro_batches: list[Any]
    state: list[Any]


# Makes one micro-batch. It changes nothing, so that a second run gives the same. Where trainable
# values are `None`, it takes those of the variables themselves.
Segment = Callable[
    [Sequence[Any] | None, Sequence[Any], Sequence[Any], Sequence[Any]], SegmentResult
]
# Makes all micro-batches, one after another, keeps nothing from inside and runs each again in the
# backward pass.
Runner = Callable[[Segment, Given], SegmentResult]


class Segments(Protocol):
    """What exact BatchNormalization needs of a framework. Modules here have this shape."""

    def make_runner(self, model: Any, micro_batches: MicroBatches) -> Runner:
        """Returns what runs a segment of the model in micro-batches of the size that is set.

        Raises:
            UsageError: The way in which the model is compiled does not allow it.
        """
