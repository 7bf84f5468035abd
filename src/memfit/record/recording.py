"""A recording: everything known of one run, in the order of time."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from memfit.record.evidence import Evidence, Uncontrolled
from memfit.record.run_folder import SUPERVISOR_FILE
from memfit.record.samples import FORMAT, Entry, Exit, Header, Mark, Sample, Software, Trouble

EntryType = TypeVar("EntryType")


@dataclass(frozen=True, slots=True)
class ProcessRecording:
    """What one process wrote, and the state its file was left in.

    Attributes:
        file: Name of the file.
        entries: Its entries in order.
        skipped_lines: Damaged lines that were passed over.
        left_out: Samples that were left out because there were so many.
        is_cut: Whether the last line was cut, as a kill leaves it.
    """

    file: str
    entries: tuple[Entry, ...] = ()
    skipped_lines: int = 0
    left_out: int = 0
    is_cut: bool = False

    @property
    def header(self) -> Header | None:
        """Its first line, if that could be read."""
        return next(_of_kind(self.entries, Header), None)

    @property
    def is_agent(self) -> bool:
        """Whether it was written inside a training process."""
        return self.file != SUPERVISOR_FILE


@dataclass(frozen=True, slots=True)
class Recording:
    """One run.

    Attributes:
        name: Name of the run.
        header: The supervisor's header, else the training process's.
        software: The framework and the versions, once known.
        outside: Readings by the supervisor: the script's process and all below it.
        inside: Readings by the agent in the process that trains. That is the script's own
            process, unless the script starts its training in another one.
        marks: Phases of the process that trains.
        evidence: What was found out about growth in it, in the order of time.
        exit: How the script ended; `None` while it runs or if it was not seen.
        begin_t_s: The first moment that anything was recorded.
        end_t_s: The last moment.
        troubles: Errors inside memfit.
        notes: Sentences about the state of the files, for the user.
    """

    name: str
    header: Header | None = None
    software: Software | None = None
    outside: tuple[Sample, ...] = ()
    inside: tuple[Sample, ...] = ()
    marks: tuple[Mark, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    exit: Exit | None = None
    begin_t_s: float = 0.0
    end_t_s: float = 0.0
    troubles: tuple[Trouble, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def merge(cls, name: str, processes: Sequence[ProcessRecording]) -> "Recording":
        """Returns the recording that the files of all processes make together."""
        watcher = next((one for one in processes if not one.is_agent), ProcessRecording(""))
        trainer = _find_trainer([one for one in processes if one.is_agent])
        entries = sorted((*watcher.entries, *trainer.entries), key=lambda entry: entry.t_s)
        return cls(
            name=name,
            header=watcher.header or trainer.header,
            software=_last(entries, Software),
            outside=tuple(_of_kind(watcher.entries, Sample)),
            inside=tuple(_of_kind(trainer.entries, Sample)),
            marks=tuple(_of_kind(trainer.entries, Mark)),
            evidence=tuple(entry for entry in entries if isinstance(entry, Evidence)),
            exit=_last(entries, Exit),
            begin_t_s=entries[0].t_s if entries else 0.0,
            end_t_s=entries[-1].t_s if entries else 0.0,
            troubles=tuple(_of_kind(entries, Trouble)),
            notes=tuple(_notes(processes)),
        )

    def of(self, kind: type[EntryType]) -> tuple[EntryType, ...]:
        """Returns the evidence of one kind, in the order of time."""
        return tuple(_of_kind(self.evidence, kind))

    @property
    def uncontrolled(self) -> tuple[str, ...]:
        """Why calls of `fit` were not held to the budget, one sentence each."""
        return tuple(one.why for one in self.of(Uncontrolled))

    @property
    def duration_s(self) -> float:
        """Time from the first to the last thing recorded."""
        return self.end_t_s - self.begin_t_s


def _find_trainer(agents: Sequence[ProcessRecording]) -> ProcessRecording:
    """What the process that trains wrote: the one with the most marks, else the first one.

    A monitor that serves several calls of `fit` writes a file for each.
    """
    by_pid: dict[int, list[ProcessRecording]] = defaultdict(list)
    for agent in sorted(agents, key=_begun_s):
        by_pid[agent.header.pid if agent.header else 0].append(agent)
    written = [
        ProcessRecording(files[0].file, tuple(entry for one in files for entry in one.entries))
        for files in by_pid.values()
    ]
    return max(written, key=_num_marks, default=ProcessRecording(""))


def _begun_s(process: ProcessRecording) -> float:
    return process.header.t_s if process.header else float("inf")


def _num_marks(process: ProcessRecording) -> int:
    return sum(1 for _ in _of_kind(process.entries, Mark))


def _of_kind(entries: Iterable[object], kind: type[EntryType]) -> Iterator[EntryType]:
    return (entry for entry in entries if isinstance(entry, kind))


def _last(entries: Iterable[object], kind: type[EntryType]) -> EntryType | None:
    found = None
    for entry in _of_kind(entries, kind):
        found = entry
    return found


def _notes(processes: Sequence[ProcessRecording]) -> Iterable[str]:
    for process in processes:
        if process.skipped_lines:
            count = process.skipped_lines
            lines = "1 damaged line was" if count == 1 else f"{count} damaged lines were"
            yield f"{process.file}: {lines} skipped; the rest was read."
        if process.left_out:
            left_out = f"{process.left_out:,} samples left out, evenly spaced"
            yield f"{process.file}: {left_out}, because the run is long."
        header = process.header
        if header is None and process.entries:
            yield f"{process.file}: its first line is missing or damaged; the rest was read."
        if header is not None and header.format > FORMAT:
            yield (
                f"{process.file}: written by a newer memfit (format {header.format}; this version "
                f"reads up to {FORMAT}). What it cannot read is left out."
            )
