"""From seconds and bytes to the axes of the chart."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memfit.record.recording import Recording
from memfit.report.run.chart_curves import Curve

_UNITS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
# Room above the highest point, for its label.
_HEADROOM = 1.15
# The clock of the chart is at zero at 2000-01-01: plotly takes a small number for a year.
_ZERO_MS = 946_684_800_000
_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS


@dataclass(frozen=True, slots=True)
class Scale:
    """The measures of one panel.

    Attributes:
        begin_t_s: The left end.
        end_t_s: The right end.
        top_bytes: The highest value drawn.
        unit_bytes: What one on the axis of memory means.
        unit: Name of that unit.
    """

    begin_t_s: float
    end_t_s: float
    top_bytes: int
    unit_bytes: int
    unit: str

    def x(self, t_s: float) -> int:
        """Returns `t_s` as a date of plotly, in milliseconds, on a clock that starts at zero."""
        return _ZERO_MS + round((t_s - self.begin_t_s) * 1000)

    def y(self, size_bytes: float) -> float:
        """Returns `size_bytes` in the unit of the axis."""
        return round(size_bytes / self.unit_bytes, 5)

    def share(self, t_s: float) -> float:
        """Returns how far to the right `t_s` is, from 0 to 1."""
        return (t_s - self.begin_t_s) / (self.end_t_s - self.begin_t_s)


def make_scale(recording: Recording, curves: Sequence[Curve]) -> Scale:
    """Returns the measures of a panel that shows `curves`, over the whole time of the run."""
    ends = [t_s for curve in curves for t_s in (curve.t_s[0], curve.t_s[-1])]
    begin_t_s = min(recording.begin_t_s, *ends)
    end_t_s = max(recording.end_t_s, *ends)
    if end_t_s - begin_t_s < 0.001:  # one single moment
        end_t_s = begin_t_s + 1.0
    top_bytes = max(curve.top_bytes for curve in curves)
    unit_bytes, unit = next((unit for unit in _UNITS if top_bytes >= unit[0]), (1, "B"))
    return Scale(begin_t_s, end_t_s, top_bytes, unit_bytes, unit)


def memory_axis(scale: Scale) -> dict[str, Any]:
    """Returns plotly's vertical axis."""
    return {
        "rangemode": "nonnegative",
        "autorangeoptions": {"include": scale.y(scale.top_bytes * _HEADROOM)},
        "ticksuffix": f" {scale.unit}",
        "hoverformat": ",.3~f" if scale.unit in ("GB", "TB") else ",.1~f",
        "exponentformat": "none",
        "separatethousands": True,
        "showspikes": False,
        "automargin": True,
    }


def time_axis(scale: Scale) -> dict[str, Any]:
    """Returns plotly's horizontal axis: a clock that starts at zero.

    An axis of dates has ticks at whole seconds, minutes or hours, at every zoom.
    """
    begin_ms, end_ms = scale.x(scale.begin_t_s), scale.x(scale.end_t_s)
    span_ms = end_ms - begin_ms
    is_short = span_ms < _HOUR_MS
    clock, minutes = ("%-M:%S", "%-M:%S") if is_short else ("%-H:%M:%S", "%-H:%M")
    day = "<br>day %-j" if span_ms >= _DAY_MS else ""
    return {
        "type": "date",
        "range": [begin_ms, end_ms],
        "title": {"text": f"since the start, {'min:s' if is_short else 'h:min'}"},
        "tickformatstops": [
            {"dtickrange": [None, 999], "value": f"{clock}.%2f"},
            {"dtickrange": [1000, 59_999], "value": clock},
            {"dtickrange": [60_000, None], "value": f"{minutes}{day}"},
        ],
        "hoverformat": f"{clock}{day}".replace("<br>", ", "),
        "tickangle": 0,
        "automargin": True,
    }
