"""How each framework runs a block of a model now and again in the backward pass."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class BlockResult:
    """What one run of a block gives.

    Attributes:
        outputs: The tensors that it makes.
        updates: New values of its state, by place among its state; what did not change is not here.
    """

    outputs: list[Any]
    updates: Mapping[int, Any]


# Trainable values, values of the state and inputs go in. It changes nothing, so that a second run
# gives the same. Where trainable values are `None`, it takes those of the variables themselves.
PureBlock = Callable[[Sequence[Any] | None, Sequence[Any], Sequence[Any]], BlockResult]


class Recompute(Protocol):
    """What recomputation needs of a framework. Modules of this package have this shape.

    Attributes:
        SHARES_SEED: Whether random operations without a seed of their own work in training. Keras
            refuses them on JAX.
    """

    SHARES_SEED: bool

    def run_recomputed(
        self,
        block: PureBlock,
        trainable: Sequence[Any],
        state: Sequence[Any],
        inputs: Sequence[Any],
    ) -> BlockResult:
        """Runs `block`, keeps nothing from inside, and runs it again in the backward pass.

        Args:
            block: What is run.
            trainable: The values of its trainable variables.
            state: The values of its other variables.
            inputs: The tensors that it reads.
        """

    def can_repeat(self, layer: Any) -> bool:
        """Returns whether a second run of `layer` is right and saves memory."""
