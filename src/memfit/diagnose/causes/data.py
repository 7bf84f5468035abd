"""Data that is in memory as arrays, and the copies made of it."""

from memfit.diagnose.causes.case import Case
from memfit.diagnose.causes.finding import Finding
from memfit.record.evidence import Loaded
from memfit.units import format_size

_LEAST_BYTES = 100_000_000
_LEAST_SHARE = 0.2
# Above this part of the limit it is a problem, below it a thing to know.
_PROBLEM_SHARE = 0.5


def find_data_in_memory(case: Case) -> list[Finding]:
    """Returns a finding for data that is a good part of all memory."""
    newest = case.newest_ever(Loaded, lambda one: (one.by, one.file, one.line))
    peak_bytes = case.peak_bytes or 0
    large = [
        one
        for one in newest
        if one.size_bytes + one.copied_bytes >= max(_LEAST_BYTES, _LEAST_SHARE * peak_bytes)
    ]
    if not large:
        return []
    most = max(large, key=lambda one: one.size_bytes + one.copied_bytes)
    is_problem = bool(case.limit_bytes) and peak_bytes >= _PROBLEM_SHARE * (case.limit_bytes or 0)
    return [_finding(most, peak_bytes, is_problem=is_problem)]


def _finding(one: Loaded, peak_bytes: int, *, is_problem: bool) -> Finding:
    total_bytes = one.size_bytes + one.copied_bytes
    copied = (
        f", and {one.by} copies {format_size(one.copied_bytes)} of it" if one.copied_bytes else ""
    )
    return Finding(
        code="data-in-memory",
        message=(
            f"All data is in memory: {format_size(one.size_bytes)} passed to {one.by}{copied}. "
            f"Together this is {total_bytes / max(peak_bytes, 1):.0%} of the peak."
        ),
        confidence="certain",
        fix=(
            'Stream it from disk within a budget: memfit.stream(("x.npy", "y.npy"), '
            "batch_size=256, shuffle=True) instead of arrays. Memory then holds a few batches."
        ),
        evidence={
            "by": one.by,
            "size_bytes": one.size_bytes,
            "copied_bytes": one.copied_bytes,
            "peak_bytes": peak_bytes,
        },
        file=one.file,
        line=one.line,
        before=one.statement,
        is_problem=is_problem,
    )
