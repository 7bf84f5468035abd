"""Many runs in the terminal, a row each."""

import time
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from memfit.diagnose.diagnosis import Diagnosis
from memfit.diagnose.killed import format_rate
from memfit.record.recording import Recording
from memfit.report.text import VERDICT_COLOURS
from memfit.units import format_duration, format_size


def render_runs(results: Sequence[tuple[Recording, Diagnosis]], console: Console) -> None:
    """Prints a table of runs."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("run", overflow="fold")
    table.add_column("begun")
    for name in ("time", "peak", "growth"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for recording, diagnosis in results:
        header, growth, peak_bytes = recording.header, diagnosis.growth, diagnosis.peak_bytes
        table.add_row(
            Text(recording.name),
            _when(header.wall_time_s) if header else "?",
            format_duration(recording.duration_s),
            format_size(peak_bytes) if peak_bytes is not None else "?",
            format_rate(growth).partition(" (")[0] if growth else "",
            Text(diagnosis.verdict, style=VERDICT_COLOURS[diagnosis.verdict]),
        )
    console.print(table)


def _when(wall_time_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(wall_time_s))
