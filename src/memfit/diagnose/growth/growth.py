"""Whether memory grows, how fast, and when it would be used up. From a recording alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memfit.diagnose.growth.intervals import (
    Interval,
    choose_counter,
    epoch_intervals,
    step_intervals,
    thin,
    time_intervals,
    while_scripted,
)
from memfit.diagnose.growth.phases import Phase
from memfit.diagnose.growth.series import Point
from memfit.diagnose.growth.trend import MIN_INTERVALS, Trend, find_trend, fit_slope

# What malloc keeps is called growth only when it is much and does not end.
# Over this many intervals it must rise by this share.
_RETAINED = ((20, 0.15), (10, 0.2))
# What is in use jumps more than what is held; a part of the rise is proof enough.
_USED_SHARE = 0.15
_LEAST_USED_BYTES = 3_000_000
_MANY_EPOCHS = 1000
_HARDLY_SHARE = 0.1
# And what has risen by so much is no creep of a training that begins.
_MUCH_SHARE = 0.3
# Growth that goes on after a trial does so at about its former rate.
_GOES_ON_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class Growth:
    """Steady growth.

    Attributes:
        bytes_per_s: Rate over time.
        bytes_per_epoch: Rate over epochs, where there are epochs.
        bytes_per_step: Rate over training steps, where steps were seen.
        low_share: Lower end of the 90% interval, as a share of the rate.
        high_share: Upper end.
        begin_t_s: Since when.
        end_t_s: Until when it was seen.
        num_intervals: Over how many epochs or intervals of time.
        unit: `"epoch"` or `"interval"`.
    """

    bytes_per_s: float
    bytes_per_epoch: float | None
    bytes_per_step: float | None
    low_share: float
    high_share: float
    begin_t_s: float
    end_t_s: float
    num_intervals: int
    unit: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """What can be said about growth.

    Attributes:
        growth: The growth; `None` if there is none, or too little to judge.
        why_unknown: Why nothing can be said; `None` if something can.
    """

    growth: Growth | None = None
    why_unknown: str | None = None


def judge_growth(
    points: Sequence[Point], phases: Sequence[Phase], trial_t_s: float | None = None
) -> Judgement:
    """Returns whether memory grows, or why that cannot be said.

    The first epoch is left out: it holds tracing, compilation and the first buffers.

    Args:
        points: Memory over time.
        phases: What the training did when.
        trial_t_s: When memfit first gave memory back itself, if it did. That hides what went
            before, so the time before it is judged on its own; it counts if memory came back.
    """
    judgement = _judge(points, phases)
    if judgement.growth is not None or trial_t_s is None or not points:
        return judgement
    bridged = _bridge(points, trial_t_s)
    if bridged and (over_it := _judge(bridged, phases)).growth is not None:
        return over_it
    before = [point for point in points if point.t_s <= trial_t_s]
    earlier = _judge(before, phases)
    if earlier.growth is None:
        return judgement
    after = [point for point in while_scripted(points) if point.t_s > trial_t_s + 0.1]
    goes_on = not after or _goes_on(before, after, earlier.growth)
    return earlier if goes_on else judgement


def _bridge(points: Sequence[Point], trial_t_s: float) -> list[Point]:
    """Points as they might have been without the trial: at its level until memory is above that.

    Nothing if it never is: then the trial tells more than the time after it.
    """
    before = [point for point in points if point.t_s <= trial_t_s]
    if not before:
        return list(points)
    level_bytes = before[-1].held_bytes
    bridged, is_back = list(before), False
    for point in points[len(before) :]:
        is_back = is_back or point.held_bytes > level_bytes
        lifted = replace(point, held_bytes=level_bytes, used_bytes=None)
        bridged.append(point if is_back else lifted)
    return bridged if is_back else []


def _goes_on(before: Sequence[Point], after: Sequence[Point], growth: Growth) -> bool:
    """Whether memory is higher than before the trial, or rises on from where that left it."""
    if after[-1].held_bytes > before[-1].held_bytes:
        return True
    later = after[len(after) // 2 :]  # at first malloc takes back what it was made to give
    expected_bytes = growth.bytes_per_s * (later[-1].t_s - later[0].t_s)
    return later[-1].held_bytes - later[0].held_bytes >= _GOES_ON_SHARE * expected_bytes


def _judge(points: Sequence[Point], phases: Sequence[Phase]) -> Judgement:
    counter = choose_counter(points)
    epochs = epoch_intervals(points, phases, counter)[1:]
    has_epochs = len(epochs) >= MIN_INTERVALS
    intervals = epochs if has_epochs else time_intervals(points, counter)
    if len(intervals) < MIN_INTERVALS:
        return Judgement(why_unknown=_explain_too_little(points, phases))
    growth = _find_growth(intervals)
    if growth is None and not has_epochs and _rises_much(intervals):
        # Where others take the machine, steps slow down and a leak with them.
        growth = _find_growth(step_intervals(points, counter))
    return Judgement(growth=growth)


def _find_growth(intervals: list[Interval]) -> Growth | None:
    intervals = thin(intervals)
    trend = _find_trend(intervals) if len(intervals) >= MIN_INTERVALS else None
    growth = _describe(intervals, trend) if trend else None
    return None if growth is not None and _is_idle(growth, intervals) else growth


def _rises_much(intervals: Sequence[Interval]) -> bool:
    """Whether memory has risen by far more than it creeps when a training begins."""
    return intervals[-1].held_bytes >= (1 + _MUCH_SHARE) * intervals[0].held_bytes


def _is_idle(growth: Growth, intervals: Sequence[Interval]) -> bool:
    """Whether memory has hardly risen and would not double in a thousand epochs.

    A Keras training that saves its model after every epoch does that.
    """
    least_bytes = min(interval.held_bytes for interval in intervals)
    has_risen = intervals[-1].held_bytes >= (1 + _HARDLY_SHARE) * least_bytes
    per_epoch = growth.bytes_per_epoch
    return not has_risen and per_epoch is not None and per_epoch * _MANY_EPOCHS < least_bytes


def _find_trend(intervals: Sequence[Interval]) -> Trend | None:
    """What is in use must rise and what is held with it; or what malloc keeps, much and long."""
    held_bytes = [float(interval.held_bytes) for interval in intervals]
    used_bytes = _fill([interval.used_bytes for interval in intervals])
    of_held = find_trend(held_bytes)
    if used_bytes is None:
        return of_held
    of_used = find_trend(used_bytes)
    if of_used is None:
        if of_held is not None and _rises_too(held_bytes, used_bytes, of_held.begin):
            return of_held
        return _find_retained(held_bytes, of_held)
    used_rise = used_bytes[-1] - used_bytes[of_used.begin]
    held_rise = held_bytes[-1] - held_bytes[of_used.begin]
    return of_held or (of_used if held_rise >= used_rise / 2 else None)


def _fill(levels: Sequence[int | None]) -> list[float] | None:
    """Levels with gaps filled from before, or from after at the beginning; `None` if too many.

    Malloc is not read every time where that would cost too much.
    """
    known = [level for level in levels if level is not None]
    if not known or len(known) < len(levels) / 2:
        return None
    filled, last = [], float(known[0])
    for level in levels:
        last = float(level) if level is not None else last
        filled.append(last)
    return filled


def _find_retained(held_bytes: list[float], of_held: Trend | None) -> Trend | None:
    """What malloc keeps rises in every clean `fit` for a while: it must be long or large."""
    count = len(held_bytes) - of_held.begin if of_held is not None else 0
    for num_intervals, share in _RETAINED:
        if count >= num_intervals:
            return find_trend(held_bytes, share * held_bytes[0])
    return None


def _rises_too(held_bytes: list[float], used_bytes: list[float], begin: int) -> bool:
    """Whether what is in use rises beyond doubt where what is held does, if less evenly."""
    slope = fit_slope(used_bytes[begin:])
    held_rise = held_bytes[-1] - held_bytes[begin]
    least_bytes = max(_USED_SHARE * held_rise, _LEAST_USED_BYTES)
    return slope.low > 0 and slope.middle * (len(used_bytes) - begin) >= least_bytes


def _describe(intervals: Sequence[Interval], trend: Trend) -> Growth:
    first, last = intervals[trend.begin], intervals[-1]
    num_intervals = len(intervals) - trend.begin
    span = num_intervals - 1
    rise_bytes = trend.per_interval * span
    epochs = sum(interval.epochs for interval in intervals[trend.begin + 1 :])
    steps = last.total_steps - first.total_steps
    return Growth(
        bytes_per_s=rise_bytes / max(last.end_t_s - first.end_t_s, 1e-9),
        bytes_per_epoch=rise_bytes / epochs if epochs else None,
        bytes_per_step=rise_bytes / steps if steps > 0 else None,
        low_share=trend.low / trend.per_interval,
        high_share=trend.high / trend.per_interval,
        begin_t_s=first.end_t_s,
        end_t_s=last.end_t_s,
        num_intervals=num_intervals,
        unit="epoch" if epochs else "interval",
    )


def _explain_too_little(points: Sequence[Point], phases: Sequence[Phase]) -> str:
    num_epochs = sum(1 for phase in phases if phase.name == "epoch" and phase.is_finished)
    seen_s = points[-1].t_s - points[0].t_s if points else 0.0
    seen = f"{num_epochs} epochs" if num_epochs != 1 else "1 epoch"
    return (
        f"the run had {seen} and {seen_s:.0f} s; this needs at least "
        f"{MIN_INTERVALS + 1} epochs, or {MIN_INTERVALS} intervals of 1 s."
    )
