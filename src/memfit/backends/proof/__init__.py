"""What a proof needs of a framework: one module a framework.

A proof runs steps in the way that takes the least time to prepare, and looks at gradients.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol


class ProofSteps(Protocol):
    """How a framework runs and differentiates the steps of a proof."""

    IS_EAGER: bool  # whether steps that are not compiled are the quick ones

    def quickly(self) -> contextlib.AbstractContextManager[None]:
        """Returns a block in which what runs once or twice is compiled soon."""

    def densify(self, gradient: Any) -> Any:
        """Returns a gradient as one tensor, where the framework keeps some rows of it only."""

    def set_seed(self, seed: int) -> None:
        """Seeds what draws outside of Keras."""

    def predict(self, model: Any, x: Any) -> tuple[Any, list[Any], list[Any]]:
        """Returns predictions of a forward pass in training, their masks, and added losses.

        The predictions are nested as the model nests them, masks and losses are flat; none of them
        carries a gradient.
        """

    def differentiate(
        self, function: Callable[[Sequence[Any]], Any], tensors: Sequence[Any]
    ) -> list[Any]:
        """Returns the gradient of a sum by each tensor, as NumPy arrays.

        Args:
            function: Takes the tensors, returns a number.
            tensors: What it depends on.
        """
