"""How each framework runs a segment of a model piece by piece, now and in the backward pass."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from memfit.backends.micro_batches import Pieces


@dataclass(frozen=True, slots=True)
class Given:
    """What a segment is given.

    Attributes:
        trainable: The values of its trainable variables.
        shared: Tensors that are the same for every piece.
        state: Values that each piece takes over from the one before, such as a seed.
        inputs: Tensors with the samples in their first axis.
    """

    trainable: Sequence[Any]
    shared: Sequence[Any]
    state: Sequence[Any]
    inputs: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Made:
    """What a segment makes, of one piece or of all of them.

    Attributes:
        samples: Tensors with a row for each sample.
        pieces: Tensors with a row for each piece.
        state: The values of the state after it.
    """

    samples: list[Any]
    pieces: list[Any]
    state: list[Any]


# Makes one piece. It changes nothing, so that a second run gives the same. Where trainable values
# are `None`, it takes those of the variables themselves.
Segment = Callable[[Sequence[Any] | None, Sequence[Any], Sequence[Any], Sequence[Any]], Made]
# Makes all pieces, one after another, keeps nothing from inside and runs each again in the
# backward pass.
Runner = Callable[[Segment, Given], Made]


class Segments(Protocol):
    """What exact BatchNormalization needs of a framework. Modules here have this shape."""

    def make_runner(self, model: Any, pieces: Pieces) -> Runner:
        """Returns what runs a segment of the model in pieces of the size that is set.

        Raises:
            UsageError: The way in which the model is compiled does not allow it.
        """
