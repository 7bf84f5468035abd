"""A run cut into intervals (epochs, or equal parts of its time or steps), with their memory."""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

from memfit.diagnose.growth.phases import Phase
from memfit.diagnose.growth.series import Point

# More intervals tell nothing new, and the slope looks at all pairs.
_MOST_INTERVALS = 60
# A run without epochs is cut into intervals of time.
_SHORTEST_S = 3.0
_POINTS_PER_INTERVAL = 2
_MOST_TIME_INTERVALS = 24
# Fewer calls than this are not the steps of a loop.
_FEWEST_STEPS = 5


@dataclass(frozen=True, slots=True)
class Interval:
    """An epoch or another part of a run, with the least memory seen in it.

    `epochs` is how many epochs it covers; 0 for an interval of time or steps.
    """

    end_t_s: float
    held_bytes: int
    used_bytes: int | None
    total_steps: int
    epochs: int = 0


def epoch_intervals(
    points: Sequence[Point], phases: Sequence[Phase], counter: str
) -> list[Interval]:
    """Epochs that were finished, in their order."""
    times = [point.t_s for point in points]
    intervals = []
    for phase in phases:
        if phase.name != "epoch" or not phase.is_finished:
            continue
        first = bisect.bisect_left(times, phase.begin_t_s)
        last = bisect.bisect_right(times, phase.end_t_s)
        if last > first:
            intervals.append(_interval(points[first:last], counter, epochs=1))
    return intervals


def time_intervals(points: Sequence[Point], counter: str) -> list[Interval]:
    """Equal intervals of time between the first and the last step; of all time without steps."""
    points = _while_training(points, counter)
    if not points or points[-1].t_s - points[0].t_s < _SHORTEST_S:
        return []
    return _cut(points, [point.t_s for point in points], counter)


def step_intervals(points: Sequence[Point], counter: str) -> list[Interval]:
    """Intervals of as many steps each, between the first and the last."""
    points = _while_training(points, counter)
    return _cut(points, [float(_steps(point, counter)) for point in points], counter)


def _cut(points: Sequence[Point], places: Sequence[float], counter: str) -> list[Interval]:
    """Intervals of equal length in what `places` count; those without a point are left out."""
    count = min(_MOST_TIME_INTERVALS, len(points) // _POINTS_PER_INTERVAL)
    length = (places[-1] - places[0]) / max(count, 1)
    groups: dict[int, list[Point]] = {}
    for point, place in zip(points, places, strict=True):
        number = min(int((place - places[0]) / length), count - 1) if length else 0
        groups.setdefault(number, []).append(point)
    return [_interval(group, counter) for _, group in sorted(groups.items())]


def _while_training(points: Sequence[Point], counter: str) -> Sequence[Point]:
    """Leaves out imports and loading data before training, and shutting down after it."""
    points = while_scripted(points)
    counts = [_steps(point, counter) for point in points]
    if not counts or counts[-1] < _FEWEST_STEPS:
        points = points[_first_after_imports(points) :]
        return points[_first_return(points) :]
    begin = next(at for at, count in enumerate(counts) if count)
    end = counts.index(counts[-1]) + 1
    return points[begin:end]


def while_scripted(points: Sequence[Point]) -> Sequence[Point]:
    """Leaves out what comes after the last line of the script: its end, when all is freed."""
    known = [number for number, point in enumerate(points) if point.at is not None]
    return points[: known[-1] + 1] if known else points


def _first_after_imports(points: Sequence[Point]) -> int:
    """Where the script goes on after the imports that were seen first."""
    importing = [number for number, point in enumerate(points) if point.is_importing]
    begin = importing[0] if importing else 0
    own = (
        number
        for number, point in enumerate(points[begin:], begin)
        if point.at is not None and not point.is_importing
    )
    return next(own, len(points)) if importing else 0


def _first_return(points: Sequence[Point]) -> int:
    """Where a loop begins: at the first line that runs again after another one."""
    last_seen = {point.at: number for number, point in enumerate(points) if point.at is not None}
    before = None
    for number, at in enumerate(point.at for point in points):
        if at is not None and at != before and last_seen[at] > number + 1:
            after = [point.at for point in points[number + 1 : last_seen[at]]]
            if any(one not in (None, at) for one in after):
                return number
        before = at
    return 0


def _interval(points: Sequence[Point], counter: str, epochs: int = 0) -> Interval:
    used_bytes = [point.used_bytes for point in points if point.used_bytes is not None]
    return Interval(
        end_t_s=points[-1].t_s,
        held_bytes=min(point.held_bytes for point in points),
        used_bytes=min(used_bytes, default=None),
        total_steps=_steps(points[-1], counter),
        epochs=epochs,
    )


def choose_counter(points: Sequence[Point]) -> str:
    """What counts steps in the end."""
    progress = next((point.progress for point in reversed(points) if point.progress), None)
    return "total_steps" if progress is None else progress.counter


def _steps(point: Point, counter: str) -> int:
    return getattr(point.progress, counter) if point.progress else 0


def thin(intervals: list[Interval]) -> list[Interval]:
    """Joins neighbours until few enough are left."""
    group = -(-len(intervals) // _MOST_INTERVALS)
    if group == 1:
        return intervals
    kept = len(intervals) // group * group
    return [
        _join(intervals[at : at + group])
        for at in range(len(intervals) - kept, len(intervals), group)
    ]


def _join(intervals: Sequence[Interval]) -> Interval:
    used_bytes = [interval.used_bytes for interval in intervals if interval.used_bytes is not None]
    return Interval(
        end_t_s=intervals[-1].end_t_s,
        held_bytes=min(interval.held_bytes for interval in intervals),
        used_bytes=min(used_bytes) if len(used_bytes) == len(intervals) else None,
        total_steps=intervals[-1].total_steps,
        epochs=sum(interval.epochs for interval in intervals),
    )
