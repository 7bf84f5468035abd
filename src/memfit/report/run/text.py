"""A run in the terminal: the verdict, a small chart, the phases, where to look next."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from memfit.diagnose.causes.finding import Finding
from memfit.diagnose.diagnosis import Run
from memfit.diagnose.growth.phases import Phase
from memfit.record.recording import Recording
from memfit.report.run.sentences import (
    caught_by_lint,
    explain,
    headline,
    place_of,
    share_of_growth,
)
from memfit.report.run.sparkline import draw_chart
from memfit.units import format_change, format_duration, format_size

VERDICT_COLOURS = {
    "steady": "green",
    "growing": "yellow",
    "near_limit": "red",
    "killed": "red",
    "failed": "red",
    "unknown": "cyan",
}


def render_text(run: Run, console: Console) -> None:
    """Prints the diagnosis of a run."""
    console.print(summarise(run, console.width))


def render_place(run: Path, console: Console) -> None:
    """Prints where a run is, and the command that shows it; neither is broken in two."""
    where, how = f"recorded in {run}", "open it with: memfit report"
    line = f"{where} · {how}"
    shown = line if cell_len(line) <= console.width else f"{where}\n{how}"
    console.print(Text(_printable(shown), style="dim"), soft_wrap=True)


def summarise(run: Run, width: int) -> RenderableType:
    """Returns the diagnosis of a run as something that rich prints."""
    recording, diagnosis = run.recording, run.diagnosis
    colour = VERDICT_COLOURS[diagnosis.verdict]
    parts: list[RenderableType] = [
        Text(_title(recording), style="dim", overflow="fold"),
        Text(headline(run), style=f"bold {colour}"),
        *(Text(sentence) for sentence in explain(run)),
    ]
    chart = draw_chart(run, width)
    if chart is not None:
        parts += [Text(), chart]
    if diagnosis.phases:
        parts += [Text(), _phase_table(diagnosis.phases)]
    said = headline(run)
    parts += [_finding(one, said) for one in diagnosis.findings if one.is_problem]
    calm = [one for one in diagnosis.findings if not one.is_problem]
    if calm:
        parts += [Text(), Text("note", style="dim italic")]
        parts += [Padding(_calm_finding(one), (min(at, 1), 0, 0, 0)) for at, one in enumerate(calm)]
    parts += [Text(f"note: {note}", style="dim") for note in _notes(recording)]
    return Group(*parts)


def _title(recording: Recording) -> str:
    header, software = recording.header, recording.software
    command = " ".join(header.command) if header else recording.name
    facts = [f"memfit · {_printable(command)}", format_duration(recording.duration_s)]
    if software is not None and software.backend is not None:
        known = ("keras", software.backend)
        facts += [
            f"{name} {software.versions[name]}" for name in known if name in software.versions
        ]
    return " · ".join(facts)


def _printable(text: str) -> str:
    """Bytes of a file name that are not UTF-8 come as lone surrogates, which no terminal takes."""
    return text.encode("utf-8", "replace").decode()


def _finding(finding: Finding, said: str) -> RenderableType:
    lines: list[RenderableType] = [Text(_label(finding), style="bold")]
    if finding.message != said:
        lines.append(Text(_printable(finding.message)))
    lines += [*_change(finding), _marked("→", finding.fix)]
    lines += [_marked("·", note) for note in finding.notes]
    if finding.lint:
        lines.append(Text(caught_by_lint(finding), style="dim"))
    return Padding(Group(*lines), (1, 0, 0, 0))


def _calm_finding(finding: Finding) -> RenderableType:
    """A finding that asks for no attention: no bold, no colour."""
    lines: list[RenderableType] = [Text(_label(finding)), Text(_printable(finding.message))]
    lines += [_marked(" ", line) for line in (finding.before or "").splitlines()]
    lines += [_marked("→", finding.fix)] if finding.fix else []
    return Group(*lines, *(_marked("·", note) for note in finding.notes))


def _label(finding: Finding) -> str:
    share = share_of_growth(finding)
    place = place_of(finding)
    where = f" {place}" if place is not None else ""
    part = f" · {share}" if share is not None else ""
    return _printable(f"{finding.code}{where} ({finding.confidence}){part}")


def _change(finding: Finding) -> list[RenderableType]:
    """The user's statement, and the same fixed, as two lines of a diff."""
    before = (finding.before or "").splitlines()
    if finding.after is None:
        return [_marked(" ", line, "dim") for line in before]
    after = finding.after.splitlines()
    removed = [_marked("-", line, "red") for line in before]
    return [*removed, *(_marked("+", line, "green") for line in after)]


def _marked(mark: str, text: str, style: str = "") -> Table:
    """A text with a sign before it; its further lines are indented as the first is."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=1)
    grid.add_column(overflow="fold")
    grid.add_row(Text(mark, style=style), Text(_printable(text), style=style))
    return grid


def _phase_table(phases: Sequence[Phase]) -> Table:
    """One row for each kind of phase: a run has too many epochs to list."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("phase")
    for name in ("times", "total time", "peak", "change"):
        table.add_column(name, justify="right")
    kinds: dict[str, list[Phase]] = defaultdict(list)
    for phase in phases:
        kinds[phase.name].append(phase)
    for name, group in kinds.items():
        peaks = [phase.peak_bytes for phase in group if phase.peak_bytes is not None]
        changes = [phase.change_bytes for phase in group if phase.change_bytes is not None]
        table.add_row(
            escape(name),
            f"{sum(phase.calls for phase in group):,}",
            format_duration(sum(phase.duration_s for phase in group)),
            format_size(max(peaks)) if peaks else "?",
            format_change(sum(changes)) if changes else "?",
        )
    return table


def _notes(recording: Recording) -> list[str]:
    troubles = recording.troubles
    notes = list(recording.notes)
    if troubles:
        notes.append(
            f"{_count(len(troubles), 'error')} inside memfit, the first in {troubles[0].where} "
            f"({troubles[0].message}). The training was not affected; please report it."
        )
    return notes


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"
