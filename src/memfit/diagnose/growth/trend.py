"""Whether a row of levels rises steadily: the arithmetic under the verdict on growth.

A level is the least memory seen in an interval (an epoch, some seconds). What counts is memory
that never comes back, so each level is lowered to the least of all that follow: a saw-tooth
then is flat, and only what stays is left.
"""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

# Fewer intervals than this cannot tell a rise from a start.
MIN_INTERVALS = 5
# A clean `fit` creeps by up to some MB before malloc settles (shared facts: 1-2 MB an epoch).
_LEAST_RISE_BYTES = 4_000_000
_LEAST_RISE_SHARE = 0.02
# A creep that settles slows down all the time; a leak does not.
_LEAST_SHARE_OF_EARLIER_RATE = 0.6
# But a rise of this share is no creep, and a busy machine slows a leak down, too.
_NO_CREEP_SHARE = 0.1
# In this many intervals a leak has risen more often than a pool that takes a chunk now and then.
_LONG_INTERVALS = 15
_LEAST_OF_MEAN = 0.9
# Every third of the time has its part in a steady rise.
_LEAST_THIRD = 0.15
_LARGEST_STEP_SHARE = 0.5
# A rise must stand out from how far neighbours differ anyway.
_LEAST_TO_NOISE = 4.0
# Two-sided 90% interval of a normal distribution.
_Z = 1.645


@dataclass(frozen=True, slots=True)
class Trend:
    """A steady rise.

    Attributes:
        begin: Index of the first level that belongs to it.
        per_interval: Median slope, in units of level an interval.
        low: Lower end of the 90% interval of the slope.
        high: Upper end.
    """

    begin: int
    per_interval: float
    low: float
    high: float


class Slope(NamedTuple):
    """A rate and the ends of its 90% interval."""

    middle: float
    low: float
    high: float


def find_trend(levels: Sequence[float], least_rise: float | None = None) -> Trend | None:
    """Returns the longest steady rise that lasts until the end, or `None`.

    Args:
        levels: Levels of equal intervals, in order.
        least_rise: How much the levels must rise in all. Defaults to 4 MB or 2% of the level,
            whichever is more.
    """
    staying = what_stays(levels)
    for begin in range(len(levels) - MIN_INTERVALS + 1):
        part = staying[begin:]
        least = least_rise or max(_LEAST_RISE_BYTES, _LEAST_RISE_SHARE * part[0])
        least = max(least, _LEAST_TO_NOISE * _noise(levels[: begin + 1]), 2 * _swing(levels, begin))
        if (
            part[-1] - part[0] >= least
            and _reaches_new_height(levels, begin)
            and _rises_evenly(part)
            and (
                part[-1] >= (1 + _NO_CREEP_SHARE) * part[0]
                or not (_slows_down(staying, begin) or _is_stairs(part))
            )
        ):
            slope = fit_slope(levels[begin:])
            return Trend(begin, slope.middle, slope.low, slope.high)
    return None


def what_stays(levels: Sequence[float]) -> list[float]:
    """Returns each level lowered to the least of itself and all that follow."""
    return list(itertools.accumulate(reversed(levels), min))[::-1]


def _reaches_new_height(levels: Sequence[float], begin: int) -> bool:
    """Whether the end is well above what was there before: a saw-tooth has been there already.

    Only the time just before counts: an early peak must not hide a leak for ever.
    """
    count = len(levels) - begin
    highest_before = max(levels[max(0, begin - 2 * count) : begin + 1])
    return levels[-1] - highest_before >= (levels[-1] - min(levels[begin:])) / 2


def _rises_evenly(staying: Sequence[float]) -> bool:
    """Whether every part of the time has its share: no jump, no start or end alone."""
    rise = staying[-1] - staying[0]
    if max(_steps(staying)) > _LARGEST_STEP_SHARE * rise:
        return False
    first, middle, last = _thirds(staying)
    return (
        min(first, middle, last) >= _LEAST_THIRD * rise
        and last >= _LEAST_SHARE_OF_EARLIER_RATE * first
    )


def _slows_down(staying: Sequence[float], begin: int) -> bool:
    """Whether the end is slower than what came just before `begin`; a jump there is ignored."""
    count = len(staying) - begin
    before = _steps(staying[max(0, begin - count) : begin + 1])
    if not before:
        return False
    last_rate = _thirds(staying[begin:])[2] * 3 / (count - 1)
    return last_rate < _LEAST_SHARE_OF_EARLIER_RATE * statistics.median(before)


def _is_stairs(staying: Sequence[float]) -> bool:
    """Whether few jumps make up a long creep, as where a pool takes another chunk now and then."""
    steps = _steps(staying)
    mean = sum(steps) / len(steps)
    num_jumps = sum(step >= _LEAST_OF_MEAN * mean for step in steps)
    return len(staying) >= _LONG_INTERVALS and num_jumps < MIN_INTERVALS - 1


def _noise(levels: Sequence[float]) -> float:
    """How far neighbours differ; nothing is known from too few."""
    return statistics.median(map(abs, _steps(levels))) if len(levels) >= MIN_INTERVALS else 0.0


def _swing(levels: Sequence[float], begin: int) -> float:
    """How far levels typically stand above what stays of them."""
    part = levels[begin:]
    return statistics.median(level - low for level, low in zip(part, what_stays(part), strict=True))


def _steps(values: Sequence[float]) -> list[float]:
    return [after - before for before, after in itertools.pairwise(values)]


def _thirds(values: Sequence[float]) -> tuple[float, float, float]:
    """How much `values` rise in their first, second and last third."""
    span = (len(values) - 1) / 3
    cuts = [_at(values, span * number) for number in range(4)]
    first, middle, last = (after - before for before, after in itertools.pairwise(cuts))
    return first, middle, last


def _at(values: Sequence[float], position: float) -> float:
    below = min(int(position), len(values) - 2)
    return values[below] + (position - below) * (values[below + 1] - values[below])


def fit_slope(values: Sequence[float]) -> Slope:
    """Theil-Sen slope and its interval: medians over all pairs, so outliers weigh little."""
    count = len(values)
    slopes = sorted(
        (values[right] - values[left]) / (right - left)
        for left, right in itertools.combinations(range(count), 2)
    )
    spread = _Z * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low = max(0, int((len(slopes) - spread) / 2))
    high = min(len(slopes) - 1, int((len(slopes) + spread) / 2) + 1)
    return Slope(statistics.median(slopes), slopes[low], slopes[high])
