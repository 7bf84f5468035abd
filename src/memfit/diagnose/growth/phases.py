"""The phases of a run: what began and ended when, and the memory in between."""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

from memfit.diagnose.growth.series import Point
from memfit.record.samples import Mark


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase.

    Attributes:
        name: `"fit"`, `"epoch"`, `"validation"`, `"evaluate"`, `"predict"`, `"train_on_batch"`.
        number: Which one, from 1; epochs count within their `fit`.
        begin_t_s: When it began.
        end_t_s: When it ended, or the last thing known if it never did.
        is_finished: Whether it ended in good order.
        calls: How many calls in a row it stands for.
        peak_bytes: The most RSS seen in it; `None` if it was too short to be seen.
        change_bytes: RSS at its end less RSS at its beginning.
    """

    name: str
    number: int
    begin_t_s: float
    end_t_s: float
    is_finished: bool = True
    calls: int = 1
    peak_bytes: int | None = None
    change_bytes: int | None = None

    @property
    def duration_s(self) -> float:
        """How long it took."""
        return self.end_t_s - self.begin_t_s


def find_phases(
    marks: Sequence[Mark], points: Sequence[Point], end_t_s: float
) -> tuple[Phase, ...]:
    """Returns the phases that `marks` tell, in the order in which they began."""
    times = [point.t_s for point in points]
    phases = []
    is_open: dict[tuple[str, int], Mark] = {}
    for mark in marks:
        key = (mark.phase, mark.number)
        if mark.event == "begin":
            is_open[key] = mark
        elif key in is_open:
            phases.append(_phase(is_open.pop(key), mark, end_t_s, points, times))
    phases += [_phase(mark, None, end_t_s, points, times) for mark in is_open.values()]
    return tuple(sorted(phases, key=lambda phase: (phase.begin_t_s, -phase.end_t_s)))


def _phase(
    begin: Mark, end: Mark | None, last_t_s: float, points: Sequence[Point], times: Sequence[float]
) -> Phase:
    end_t_s = end.t_s if end else last_t_s
    first = bisect.bisect_left(times, begin.t_s)
    last = bisect.bisect_right(times, end_t_s)
    rss_bytes = [point.rss_bytes for point in points[first:last]]
    before = points[first - 1].rss_bytes if first else (rss_bytes[0] if rss_bytes else None)
    return Phase(
        name=begin.phase,
        number=begin.number,
        begin_t_s=begin.t_s,
        end_t_s=end_t_s,
        is_finished=end is not None,
        calls=end.calls if end else 1,
        peak_bytes=max(rss_bytes, default=None),
        change_bytes=rss_bytes[-1] - before if rss_bytes and before is not None else None,
    )
