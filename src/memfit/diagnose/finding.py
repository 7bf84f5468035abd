"""A finding: what is wrong, how it is known, how sure, and what to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a person should know.

    Attributes:
        code: Short name, such as `"killed"`.
        message: One sentence with figures.
        confidence: `"certain"`, `"likely"` or `"possible"`.
        fix: What to do next.
        evidence: The figures it rests on.
        file: The person's own file, where known.
        line: The line in it.
    """

    code: str
    message: str
    confidence: str
    fix: str
    evidence: Mapping[str, float | int | str | None] = field(default_factory=dict)
    file: str | None = None
    line: int | None = None
