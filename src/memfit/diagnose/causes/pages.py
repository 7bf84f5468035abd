"""Pages of files: they count as resident, and the kernel takes them back when it needs to."""

from memfit.diagnose.causes.case import Case
from memfit.diagnose.causes.finding import Finding
from memfit.record.evidence import Holding
from memfit.units import format_size

_LEAST_BYTES = 30_000_000
_LEAST_SHARE = 0.5


def find_file_pages(case: Case) -> list[Finding]:
    """Returns a note if what rises is file pages: not a leak, and it says so."""
    samples = case.recording.inside or case.recording.outside
    if len(samples) < 4:
        return []
    first, last = samples[len(samples) // 4].process, samples[-1].process
    file_bytes = [one.process.file_bytes or 0 for one in samples[len(samples) // 4 :]]
    risen_bytes = max(file_bytes) - file_bytes[0]
    held_bytes = last.held_bytes - first.held_bytes
    if risen_bytes < _LEAST_BYTES or risen_bytes < _LEAST_SHARE * (risen_bytes + held_bytes):
        return []
    mapped = [one for one in case.recording.of(Holding) if one.item_kind == "memmap"]
    source = mapped[-1] if mapped else None
    file, line = (source.file, source.line) if source else case.busiest_line()
    name = f" of {source.owner}" if source else ""
    return [
        Finding(
            code="file-pages",
            message=(
                f"RSS rose by {format_size(risen_bytes)} of file pages{name}: parts of mapped "
                "files that were read. This is not a leak; the kernel reclaims them when it needs "
                "memory."
            ),
            confidence="certain",
            fix="Nothing to do. To judge this training, look at anonymous memory.",
            evidence={"file_bytes": risen_bytes, "held_bytes": held_bytes},
            file=file,
            line=line,
            before=source.statement if source else None,
            is_problem=False,
        )
    ]
