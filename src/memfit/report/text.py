"""A run in the terminal: the verdict, a small chart, the phases, where to look next."""

from collections import defaultdict
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from memfit.diagnose.diagnosis import Diagnosis
from memfit.diagnose.finding import Finding
from memfit.diagnose.phases import Phase
from memfit.record.recording import Recording
from memfit.report.blocks import draw_chart
from memfit.report.sentences import explain, headline
from memfit.units import format_change, format_duration, format_size

VERDICT_COLOURS = {
    "steady": "green",
    "growing": "yellow",
    "near_limit": "red",
    "killed": "red",
    "failed": "red",
    "unknown": "cyan",
}


def render_text(recording: Recording, diagnosis: Diagnosis, console: Console) -> None:
    """Prints the diagnosis of a run."""
    console.print(summarise(recording, diagnosis, console.width))


def summarise(recording: Recording, diagnosis: Diagnosis, width: int) -> RenderableType:
    """Returns the diagnosis of a run as something that rich prints."""
    colour = VERDICT_COLOURS[diagnosis.verdict]
    parts: list[RenderableType] = [
        Text(_title(recording), style="dim", overflow="fold"),
        Text(headline(recording, diagnosis), style=f"bold {colour}"),
        *(Text(sentence) for sentence in explain(recording, diagnosis)),
    ]
    chart = draw_chart(recording, diagnosis, width)
    if chart is not None:
        parts += [Text(), chart]
    if diagnosis.phases:
        parts += [Text(), _phase_table(diagnosis.phases)]
    parts += [_finding(finding, headline(recording, diagnosis)) for finding in diagnosis.findings]
    parts += [Text(f"note: {note}", style="dim") for note in _notes(recording)]
    return Group(*parts)


def _title(recording: Recording) -> str:
    header, software = recording.header, recording.software
    command = " ".join(header.command) if header else recording.name
    # Bytes of a file name that are not UTF-8 come as lone surrogates, which no terminal takes.
    printable = command.encode("utf-8", "replace").decode()
    facts = [f"memfit · {printable}", format_duration(recording.duration_s)]
    if software is not None and software.backend is not None:
        known = ("keras", software.backend)
        facts += [
            f"{name} {software.versions[name]}" for name in known if name in software.versions
        ]
    return " · ".join(facts)


def _finding(finding: Finding, said: str) -> RenderableType:
    where = f" {finding.file}:{finding.line}" if finding.file else ""
    lines = [Text(f"{finding.code}{where} ({finding.confidence})", style="bold")]
    if finding.message != said:
        lines.append(Text(finding.message))
    lines.append(Text(f"→ {finding.fix}"))
    return Padding(Group(*lines), (1, 0, 0, 0))


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
            f"({troubles[0].message}). Training was not touched; please report it."
        )
    return notes


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"
