"""A finding: what is wrong, how it is known, how sure, and what to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a user should know.

    Attributes:
        code: Short name, such as `"killed"`.
        message: One sentence with figures.
        confidence: `"certain"`, `"likely"` or `"possible"`.
        fix: What to do next.
        evidence: The figures it rests on.
        file: The user's own file, where known.
        line: The line in it.
        before: The user's own statement at that line.
        after: The same statement fixed, where it can be written down.
        growth_bytes: What it adds to memory, where that was measured.
        share: The part of all growth that this is.
        share_is_rest: Whether `share` was not measured: it is what other causes leave.
        holder: What keeps the memory, as the user's code names it, where that was seen.
        is_problem: Whether it needs attention; a note does not.
        lint: Codes of `memfit lint` that tell of it before anything runs.
        notes: Further sentences, such as why a remedy in the script does not help.
    """

    code: str
    message: str
    confidence: str
    fix: str
    evidence: Mapping[str, float | int | str | None] = field(default_factory=dict)
    file: str | None = None
    line: int | None = None
    before: str | None = None
    after: str | None = None
    growth_bytes: int | None = None
    share: float | None = None
    share_is_rest: bool = False
    holder: str | None = None
    is_problem: bool = True
    lint: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
