"""A small chart of memory over time, drawn with block characters."""

from collections.abc import Sequence

from rich.text import Text

from memfit.diagnose.diagnosis import Run
from memfit.diagnose.growth.series import Point
from memfit.units import format_duration, format_size

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_ROWS = 6
_LABEL_WIDTH = 9
_WIDEST = 100


def draw_chart(run: Run, width: int) -> Text | None:
    """Returns RSS over time as rows of blocks; `None` if there is nothing to draw."""
    points = run.diagnosis.points
    if len(points) < 2:
        return None
    columns = _columns(points, max(min(width, _WIDEST) - _LABEL_WIDTH - 1, 1))
    low_bytes, high_bytes = _bounds(columns)
    chart = Text(no_wrap=True)
    for row in reversed(range(_ROWS)):
        label = {_ROWS - 1: format_size(high_bytes), 0: format_size(low_bytes)}.get(row, "")
        chart.append(f"{label:>{_LABEL_WIDTH}} ", style="dim")
        chart.append("".join(_cell(value, low_bytes, high_bytes, row) for value in columns))
        chart.append("\n")
    chart.append(_axis(run, len(columns)), style="dim")
    return chart


def _columns(points: Sequence[Point], count: int) -> list[int]:
    """The most memory in each column; a column without a point repeats the one before."""
    begin_s, span_s = points[0].t_s, max(points[-1].t_s - points[0].t_s, 1e-9)
    columns: list[int | None] = [None] * count
    for point in points:
        at = min(int((point.t_s - begin_s) / span_s * count), count - 1)
        columns[at] = max(columns[at] or 0, point.rss_bytes)
    filled: list[int] = []
    for value in columns:
        filled.append(value if value is not None else filled[-1])
    return filled


def _bounds(values: Sequence[int]) -> tuple[int, int]:
    """From zero, unless everything happens in the upper part: then growth must be seen."""
    low_bytes, high_bytes = min(values), max(values)
    if low_bytes < high_bytes / 2:
        return 0, high_bytes
    margin = max((high_bytes - low_bytes) // 10, high_bytes // 100)
    return max(low_bytes - margin, 0), high_bytes


def _cell(value: int, low_bytes: int, high_bytes: int, row: int) -> str:
    height = (value - low_bytes) / max(high_bytes - low_bytes, 1) * _ROWS * 8
    return _EIGHTHS[max(0, min(8, round(height - row * 8)))]


def _axis(run: Run, columns: int) -> str:
    recording, diagnosis = run.recording, run.diagnosis
    begin = format_duration(diagnosis.points[0].t_s - recording.begin_t_s)
    end = format_duration(diagnosis.points[-1].t_s - recording.begin_t_s)
    room = max(columns - len(begin), 1)
    return f"{'RSS':>{_LABEL_WIDTH}} {begin}{end:>{room}}"
