"""What the loss of a micro-batch counts for, so that all add up to the loss of the batch.

Keras averages a loss over samples, over the entries that a mask lets through, over the sum of the
weights, or not at all. A micro-batch's gradients are weighted by its samples; a loss that is
averaged over something else is corrected here, by what the micro-batch has of it. Keras's own
trackers, which weigh by samples too, then hold the figures of the whole batch.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from memfit.keras_private.layers import get_mask
from memfit.keras_private.losses import built_losses, replaced_losses


class NeedsTotalsError(Exception):
    """A loss is averaged over something that only a look at the whole batch can tell."""


class _Weighed:
    """A loss of a micro-batch, corrected for what it is averaged over."""

    def __init__(
        self, loss: Any, share_of_samples: Any, total: Any | None, told: list[Any]
    ) -> None:
        self.loss = loss
        self.name = loss.name
        self.reduction = loss.reduction
        self._share_of_samples = share_of_samples
        self._total = total
        self._told = told

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        value = self._correct(self.loss(y_true, y_pred, sample_weight), y_pred, sample_weight)
        self._told.append(value * self._share_of_samples)
        return value

    def _correct(self, value: Any, y_pred: Any, sample_weight: Any) -> Any:
        if self.loss.reduction == "sum":
            return value / self._share_of_samples
        averaged_over = _averaged_over(self.loss, y_pred, sample_weight)
        if averaged_over is None:
            return value
        if self._total is None:
            raise NeedsTotalsError
        from keras import ops

        return value * ops.divide_no_nan(averaged_over, self._total) / self._share_of_samples


class _Counted:
    """Stands in for a loss and notes what it is averaged over."""

    def __init__(self, loss: Any, counts: list[Any]) -> None:
        self.loss = loss
        self.name = loss.name
        self.reduction = loss.reduction
        self._counts = counts

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        from keras import ops

        averaged_over = _averaged_over(self.loss, y_pred, sample_weight)
        zero = ops.zeros((), "float32")
        self._counts.append(zero if averaged_over is None else averaged_over)
        return zero


def _averaged_over(loss: Any, y_pred: Any, sample_weight: Any) -> Any | None:
    """What Keras divides by, where that is not a fixed number for every sample."""
    from keras import ops

    if loss.reduction == "sum":
        return None
    mask = get_mask(y_pred)
    weighs = loss.reduction == "mean_with_sample_weight" and sample_weight is not None
    if mask is not None:
        mask = ops.cast(mask, "float32")
    if not weighs:
        return None if mask is None else ops.sum(mask)
    weights = ops.cast(sample_weight, "float32")
    if mask is None:
        return ops.sum(weights)
    if len(mask.shape) != len(weights.shape):
        weights = ops.reshape(weights, (-1, *[1] * (len(mask.shape) - 1)))
    return ops.sum(mask * weights)


@contextlib.contextmanager
def weighed(model: Any, share_of_samples: Any, totals: Sequence[Any] | None) -> Iterator[list[Any]]:
    """Corrects the model's compiled losses for a micro-batch that has this share of the samples.

    Gives a list that then holds, for each loss, what the micro-batch adds to that of the batch.

    Raises:
        NeedsTotalsError: A loss needs the totals of the batch, and there are none.
    """
    losses = built_losses(model)
    known: Sequence[Any] = totals if totals is not None else [None] * len(losses)
    told: list[Any] = []
    with replaced_losses(
        model,
        [
            one._replace(loss=_Weighed(one.loss, share_of_samples, total, told))
            for one, total in zip(losses, known, strict=True)
        ],
    ):
        yield told


@contextlib.contextmanager
def counted(model: Any) -> Iterator[list[Any]]:
    """Puts counters in the place of the losses and gives the list that they write to."""
    counts: list[Any] = []
    counters = [one._replace(loss=_Counted(one.loss, counts)) for one in built_losses(model)]
    with replaced_losses(model, counters):
        yield counts


def count_losses(model: Any) -> int:
    """Returns how many compiled losses the model has."""
    return len(built_losses(model))
