"""What a proof needs of a framework: one module a framework.

A proof runs steps in the way that takes the least time to prepare, and looks at gradients.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from memfit.keras_private.draws import HeldDraws

# Takes inputs; returns predictions, their masks, and added losses. Predictions are nested as the
# model nests them, masks and losses are flat; none of them carries a gradient.
Predict = Callable[[Any], tuple[Any, list[Any], list[Any]]]
# Takes inputs and which of the added losses; returns its gradient by each weight that is trained.
AddedGradient = Callable[[Any, int], list[Any]]
# Takes a batch and tensors; returns the gradient by each tensor of real numbers, as NumPy arrays.
Gradient = Callable[[Any, Sequence[Any]], list[Any]]


class ProofSteps(Protocol):
    """How a framework runs and differentiates the steps of a proof."""

    IS_EAGER: bool  # whether steps that are not compiled are the quick ones
    RUNS_PYTHON: bool  # whether a training runs the user's code in every step unless it is compiled

    def quickly(self) -> contextlib.AbstractContextManager[None]:
        """Returns a block in which what runs once or twice is compiled soon.

        At its end the framework's own random numbers are seeded as before.
        """

    def densify(self, gradient: Any) -> Any:
        """Returns a gradient as one tensor, where the framework keeps some rows of it only."""

    def is_variable(self, value: Any) -> bool:
        """Returns whether it is a variable of the framework's own that a step may write to."""

    def read(self, tensor: Any) -> Any:
        """Returns the numbers of a tensor or a variable as a NumPy array."""

    def set_seed(self, seed: int) -> None:
        """Seeds what draws outside of Keras."""

    def as_data(self, batch: Any) -> dict[str, Any]:
        """Returns a batch as arguments of `fit`, in the form that is made ready soonest.

        Args:
            batch: Inputs, targets and weights.
        """

    def make_predict(self, model: Any, held: HeldDraws) -> Predict:
        """Returns what runs forward passes in training.

        Args:
            model: A built model.
            held: Its draws; another `turn` draws other numbers.
        """

    def make_added_gradient(self, model: Any, held: HeldDraws) -> AddedGradient:
        """Returns what differentiates a loss that a layer adds by the weights.

        Args:
            model: A built model.
            held: Its draws.
        """

    def make_gradient(self, model: Any, function: Callable[[Any, Sequence[Any]], Any]) -> Gradient:
        """Returns what differentiates a function.

        Args:
            model: Whose losses it computes.
            function: Takes a batch and tensors, returns a number.
        """
