"""How far what two steps left behind lies apart, and how far rounding alone may take it: pure."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

# What rounding does to sums that are taken in another order.
TOLERANCE = 1e-5
# Times the error that reversing the rows makes; a cut adds sums in yet another order.
_TIMES_NOISE = 8
# Rows in another order that give another result are a coupling themselves.
MOST_NOISE = 1e-3
# A tensor whose true gradient is zero has rounding only; it is measured by the others. So is one
# of a few numbers, such as the bias of one output: sums that cancel out leave mostly rounding.
_FLOOR = 0.1
# The same for a variable that is not trained, beside the others of its layer.
_STATE_FLOOR = 1e-3


def tolerance(noise: float) -> float:
    """Returns the error that is rounding, in a model where reversing the rows makes `noise`."""
    return max(TOLERANCE, _TIMES_NOISE * noise) if noise < MOST_NOISE else TOLERANCE


def root_mean_square(arrays: Iterable[Any]) -> float:
    """Returns the root mean square over all numbers of all arrays."""
    squares, number = 0.0, 0
    for one in arrays:
        squares += _sum_squares(one)
        number += one.size
    return math.sqrt(squares / number) if number else 0.0


def are_zero(arrays: Iterable[Any]) -> bool:
    """Returns whether all numbers of all arrays are zero; what is no number is not."""
    return not any(one.any() for one in arrays)


def gradient_errors(first: Iterable[Any], second: Iterable[Any], scale: float) -> list[float]:
    """Returns how far each gradient of one step lies from that of the other.

    Args:
        first: The gradients of one step, as arrays.
        second: Those of the other.
        scale: The root mean square of all gradients: one that is far smaller counts as so large.
    """
    return [
        _distance(one, other, scale * max(_FLOOR * math.sqrt(one.size), 1.0))
        for one, other in zip(first, second, strict=True)
    ]


def value_errors(first: Sequence[Any], second: Sequence[Any]) -> list[float]:
    """Returns how far each value of one step lies from that of the other, relative to it."""
    if len(first) != len(second):
        return [math.inf]
    return [_distance(one, other, 0.0) for one, other in zip(first, second, strict=True)]


def state_errors(first: Sequence[Any], second: Sequence[Any], owners: Sequence[str]) -> list[float]:
    """Returns how far each variable of one step lies from that of the other.

    The mean of what was normalised just before is rounding and nothing else. So a variable counts
    as no smaller than a share of what its owner has.

    Args:
        first: The variables after one step, as arrays.
        second: Those after the other.
        owners: What has each variable, such as a layer.
    """
    if len(first) != len(second):
        return [math.inf]
    of_owner = {
        owner: root_mean_square(one for one, by in zip(first, owners, strict=True) if by == owner)
        for owner in set(owners)
    }
    return [
        _distance(one, other, _STATE_FLOOR * of_owner[owner] * math.sqrt(one.size))
        for one, other, owner in zip(first, second, owners, strict=True)
    ]


def _distance(one: Any, other: Any, floor: float) -> float:
    """The relative distance of two arrays; what is no number in both is equal."""
    import numpy as np

    one, other = (np.asarray(array) for array in (one, other))
    if one.shape != other.shape:
        return math.inf
    if one.dtype.kind not in "fc":
        one, other = one.astype("float64"), other.astype("float64")
    is_odd = ~np.isfinite(one)
    if is_odd.any() or not np.isfinite(other).all():
        if not np.array_equal(one[is_odd], other[is_odd], equal_nan=True):
            return math.inf
        one, other = np.where(is_odd, 0, one), np.where(is_odd, 0, other)
        if not np.isfinite(other).all():
            return math.inf
    apart = math.sqrt(_sum_squares(one - other))
    return apart / max(math.sqrt(_sum_squares(one)), floor, 1e-30) if apart else 0.0


def _sum_squares(array: Any) -> float:
    import numpy as np

    flat = np.asarray(array).reshape(-1)
    flat = np.where(np.isfinite(flat), flat, 0)
    return float(np.sum(np.square(flat, dtype="float64"))) if flat.size else 0.0


@dataclass(frozen=True, slots=True)
class Errors:
    """How far what one step left lies from what another left, each relative to its size.

    Attributes:
        gradients: By weight.
        states: By variable that is not trained.
        metrics: By variable of a metric.
        logs: By number that `fit` returns.
    """

    gradients: Sequence[float] = ()
    states: Sequence[float] = ()
    metrics: Sequence[float] = ()
    logs: Sequence[float] = ()

    @property
    def worst(self) -> float:
        """The largest of all."""
        return max((*self.gradients, *self.states, *self.metrics, *self.logs), default=0.0)

    def beyond(self, noise: "Errors") -> "Errors":
        """Returns the errors that are no rounding, 0 for the others.

        Args:
            noise: What reversing the rows does to the same numbers.
        """
        in_gradients = tolerance(max(noise.gradients, default=0.0))
        return Errors(
            [one if one > in_gradients else 0.0 for one in self.gradients],
            _beyond(self.states, noise.states),
            _beyond(self.metrics, noise.metrics),
            _beyond(self.logs, noise.logs),
        )


def _beyond(errors: Sequence[float], noise: Sequence[float]) -> list[float]:
    most = list(noise) if len(noise) == len(errors) else [0.0] * len(errors)
    return [one if one > tolerance(n) else 0.0 for one, n in zip(errors, most, strict=True)]
