"""Many runs in the terminal, a row each."""

import time
from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from memfit.diagnose.diagnosis import Run
from memfit.diagnose.killed import format_rate
from memfit.report.run.text import VERDICT_COLOURS
from memfit.units import format_duration, format_size

_COLUMNS = ("run", "begun", "time", "peak", "growth", "verdict")
# What is left out where the terminal is narrow, in this order: the name tells when it began.
_DROPPED = ("begun", "time", "peak", "growth")
_GAP = 2


def render_runs(runs: Sequence[Run], console: Console) -> None:
    """Prints a table of runs. Names are never cut; other columns are dropped first.

    A table that is too wide even then is left to the terminal to break.
    """
    rows = [_row(run) for run in runs]
    widths = {
        name: max(cell_len(text) for text in (name, *(row[name] for row in rows)))
        for name in _COLUMNS
    }
    for name in _DROPPED:
        if _width(widths) > console.width:
            del widths[name]
    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, _GAP, 0, 0),
        header_style="dim",
        width=_width(widths),
    )
    for name in widths:
        is_figure = name in ("time", "peak", "growth")
        table.add_column(name, justify="right" if is_figure else "left", no_wrap=True)
    for row in rows:
        styles = {"verdict": VERDICT_COLOURS[row["verdict"]]}
        table.add_row(*(Text(row[name], style=styles.get(name, "")) for name in widths))
    console.print(table, soft_wrap=True)


def _row(run: Run) -> dict[str, str]:
    recording, diagnosis = run.recording, run.diagnosis
    header, growth, peak_bytes = recording.header, diagnosis.growth, diagnosis.peak_bytes
    return {
        "run": recording.name,
        "begun": _when(header.wall_time_s) if header else "?",
        "time": format_duration(recording.duration_s),
        "peak": format_size(peak_bytes) if peak_bytes is not None else "?",
        "growth": format_rate(growth).partition(" (")[0] if growth else "",
        "verdict": diagnosis.verdict,
    }


def _width(widths: Mapping[str, int]) -> int:
    return sum(widths.values()) + _GAP * (len(widths) - 1)


def _when(wall_time_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(wall_time_s))
