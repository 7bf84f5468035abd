"""The last step of every Keras loss: what it gets, as it gets it, and what it makes of it."""

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from memfit.keras_private.names import relies_on

_LOSS = "keras.src.losses.loss"


@dataclass(frozen=True, slots=True)
class Reduction:
    """What a loss gives to be summed or averaged.

    Attributes:
        values: The loss of each sample, or of each of its positions.
        sample_weight: Their weights, if there are any.
        mask: Which of them count, if not all: by the predictions, by the loss itself, or by both.
        kind: How they are reduced, as in `keras.losses.Loss(reduction=...)`.
    """

    values: Any
    sample_weight: Any
    mask: Any
    kind: str | None

    @property
    def is_reduced(self) -> bool:
        """Whether anything is summed; one number stays as it is."""
        is_number = tuple(getattr(self.values, "shape", ())) == ()
        return self.kind not in (None, "none") and not (is_number and self.sample_weight is None)

    @property
    def is_averaged_by_mask(self) -> bool:
        """Whether the weights are multiplied by how little the mask lets through."""
        return self.mask is not None and self.kind in ("mean", "sum_over_batch_size")


# Takes what is reduced, and what reduces it with these weights; returns the loss.
Observer = Callable[[Reduction, Callable[[Any], Any]], Any]


@relies_on(f"{_LOSS}.reduce_weighted_values")
@contextlib.contextmanager
def observed_reductions(observe: Observer) -> Iterator[None]:
    """Has `observe` do the last step of every loss that this thread computes in the block."""
    from keras.src.losses import loss as module

    original = module.reduce_weighted_values
    thread = threading.get_ident()

    @functools.wraps(original)
    def reduce(
        values: Any,
        sample_weight: Any = None,
        mask: Any = None,
        reduction: str | None = "sum_over_batch_size",
        dtype: Any = None,
    ) -> Any:
        def run(weights: Any) -> Any:
            return original(values, weights, mask, reduction, dtype)

        if threading.get_ident() != thread:
            return run(sample_weight)
        return observe(Reduction(values, sample_weight, mask, reduction), run)

    module.reduce_weighted_values = reduce
    try:
        yield
    finally:
        module.reduce_weighted_values = original


@relies_on(f"{_LOSS}.apply_mask")
def sum_of_weights(given: Reduction) -> Any:
    """Returns the sum of the weights of what the mask lets through."""
    from keras import ops
    from keras.src.losses import loss as module

    # Keras writes into the weights on one framework.
    weights = ops.copy(ops.cast(given.sample_weight, "float32"))
    return ops.sum(module.apply_mask(weights, given.mask, dtype="float32", reduction="sum"))
