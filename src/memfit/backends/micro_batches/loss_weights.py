"""What the loss of a micro-batch counts for, so that all add up to the loss of the batch.

Keras averages a loss over samples, over the entries that a mask lets through, over the sum of the
weights, or not at all. A micro-batch's gradients are weighted by its samples; a loss that is
averaged over something else is corrected here, by what the micro-batch has of it. What that is, is
seen when Keras reduces the loss: a loss may make its mask itself, and a model may call losses that
were not given to `compile`. Keras's own trackers, which weigh by samples too, then hold the figures
of the whole batch.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from memfit.errors import UsageError
from memfit.keras_private.reductions import Reduction, observed_reductions, sum_of_weights

_Result = TypeVar("_Result")
# One without the totals, one with them, and one more where a model was compiled anew in between.
_MOST_ATTEMPTS = 3


class NeedsTotalsError(Exception):
    """A loss is averaged over something that only a look at the whole batch can tell.

    Args:
        number: How many losses a micro-batch has.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Totals:
    """What the losses of whole batches are averaged over, counted only where it is needed."""

    def __init__(self) -> None:
        self._number: int | None = None

    def run(
        self,
        attempt: Callable[[Sequence[Any] | None], _Result],
        count: Callable[[int], Sequence[Any]],
        undo: Callable[[], None] = lambda: None,
    ) -> _Result:
        """Returns what `attempt` makes of a batch.

        Args:
            attempt: Runs the batch with these totals.
            count: Returns the totals of the batch, for so many losses.
            undo: Puts back what an attempt without totals has changed.

        Raises:
            UsageError: Micro-batches of one batch have different losses.
        """
        for _ in range(_MOST_ATTEMPTS):
            try:
                return attempt(None if self._number is None else count(self._number))
            except NeedsTotalsError as needed:
                undo()
                self._number = needed.number
        raise UsageError(
            "The micro-batches of one batch do not all compute the same losses, so what they are "
            "averaged over cannot be added up. Train this model in whole batches."
        )


class _Weighing:
    """Corrects each loss of a micro-batch for what it is averaged over."""

    def __init__(self, share_of_samples: Any, totals: Sequence[Any] | None) -> None:
        self._share_of_samples = share_of_samples
        self._totals = totals
        self._number = 0
        self._lacks_totals = False

    def __call__(self, given: Reduction, reduce: Callable[[Any], Any]) -> Any:
        place, self._number = self._number, self._number + 1
        factor = self._find_factor(given, place)
        if factor is None:
            return reduce(given.sample_weight)
        from keras import ops

        with _written_weights(given, factor) as weights:
            value = reduce(weights)
        return value * ops.cast(factor, value.dtype)

    def _find_factor(self, given: Reduction, place: int) -> Any | None:
        if isinstance(self._share_of_samples, float) and self._share_of_samples == 1.0:
            return None
        if given.is_reduced and given.kind == "sum":
            return 1.0 / self._share_of_samples
        averaged_over = _averaged_over(given)
        if averaged_over is None:
            return None
        if self._totals is None or place >= len(self._totals):
            self._lacks_totals = True
            return None
        from keras import ops

        return ops.divide_no_nan(averaged_over, self._totals[place]) / self._share_of_samples

    def check(self) -> None:
        """Raises if totals are missing, or are those of other losses."""
        differs = self._totals is not None and len(self._totals) != self._number
        if self._lacks_totals or differs:
            raise NeedsTotalsError(self._number)


@contextlib.contextmanager
def _written_weights(given: Reduction, factor: Any) -> Iterator[Any]:
    """Gives the weights for a loss; what it writes into them is written as for the whole batch.

    On torch Keras multiplies the weights by the mask and by the inverse of what this lets through
    of the micro-batch. Metrics get the weights next.
    """
    weights = given.sample_weight
    if not hasattr(weights, "_version"):  # it cannot be written to
        yield weights
        return
    own = weights.clone()
    yield own
    if own._version:
        weights.copy_(own * factor if given.is_averaged_by_mask else own)


def _averaged_over(given: Reduction) -> Any | None:
    """What Keras divides by, where that is not a fixed number for every sample."""
    from keras import ops

    if not given.is_reduced or given.kind == "sum":
        return None
    if given.kind == "mean_with_sample_weight" and given.sample_weight is not None:
        return sum_of_weights(given)
    return None if given.mask is None else ops.sum(ops.cast(given.mask, "float32"))


@contextlib.contextmanager
def weighed(share_of_samples: Any, totals: Sequence[Any] | None) -> Iterator[None]:
    """Corrects the losses of a micro-batch that has this share of the samples.

    Args:
        share_of_samples: Between 0 and 1.
        totals: What each loss of the whole batch is averaged over, as `counted` tells of its parts.

    Raises:
        NeedsTotalsError: A loss needs the totals of the batch, and there are none.
    """
    weighing = _Weighing(share_of_samples, totals)
    with observed_reductions(weighing):
        yield
    weighing.check()


@contextlib.contextmanager
def counted() -> Iterator[list[Any]]:
    """Gives a list of what each loss that is computed in the block is averaged over."""
    from keras import ops

    counts: list[Any] = []

    def count(given: Reduction, reduce: Callable[[Any], Any]) -> Any:
        averaged_over = _averaged_over(given)
        counts.append(ops.zeros((), "float32") if averaged_over is None else averaged_over)
        return reduce(given.sample_weight)

    with observed_reductions(count):
        yield counts
