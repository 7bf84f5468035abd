"""Reads a run folder back, whatever state its files were left in."""

from dataclasses import dataclass, field
from pathlib import Path

from memfit.record.jsonl import decode
from memfit.record.recording import ProcessRecording, Recording
from memfit.record.run_folder import list_files
from memfit.record.samples import Entry

# A day of training is some 100,000 samples; fewer tell the same, and are read in a second.
_MOST_SAMPLES = 10_000
_SAMPLE = b'{"kind":"sample"'


@dataclass
class FileReader:
    """Reads one file, and later what was added to it since.

    Attributes:
        path: The file.
        skipped_lines: Damaged lines passed over so far.
        left_out: Samples left out so far, because there were so many.
        is_cut: Whether the last line is still without its end.
    """

    path: Path
    skipped_lines: int = 0
    left_out: int = 0
    is_cut: bool = False
    _offset: int = field(default=0, repr=False)

    def read_new(self) -> list[Entry]:
        """Returns the entries that were added since the last call."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                text = file.read()
        except OSError:
            return []
        lines, _, rest = text.rpartition(b"\n")
        self._offset += len(text) - len(rest)
        self.is_cut = bool(rest)
        return [entry for line in self._thin(lines.split(b"\n")) if (entry := self._decode(line))]

    def _thin(self, lines: list[bytes]) -> list[bytes]:
        """Leaves out most of very many samples, evenly, and nothing else."""
        samples = [at for at, line in enumerate(lines) if line.startswith(_SAMPLE)]
        every = -(-len(samples) // _MOST_SAMPLES)
        if every <= 1:
            return lines
        kept = {*samples[::every], samples[-1]}
        dropped = set(samples) - kept
        self.left_out += len(dropped)
        return [line for at, line in enumerate(lines) if at not in dropped]

    def _decode(self, line: bytes) -> Entry | None:
        if not line.strip():
            return None
        try:
            return decode(line)
        except ValueError:
            self.skipped_lines += 1
            return None


def read_run(run: Path) -> Recording:
    """Returns all that the folder `run` tells, merged by the monotonic clock."""
    return Recording.merge(run.name, [_read_process(path) for path in list_files(run)])


def _read_process(path: Path) -> ProcessRecording:
    reader = FileReader(path)
    return ProcessRecording(
        file=path.name,
        entries=tuple(reader.read_new()),
        skipped_lines=reader.skipped_lines,
        left_out=reader.left_out,
        is_cut=reader.is_cut,
    )
