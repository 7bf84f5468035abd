"""Hints of lint as lines of text and as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from memfit.lint.hint import Hint


def render_hints(hints: Sequence[Hint], *, num_files: int) -> str:
    """Returns `hints` as text: a line each as editors read it, its fix below, a count at the end.

    Args:
        hints: What lint saw.
        num_files: How many files it looked at.
    """
    lines = [
        f"{hint.file}:{hint.line}:{hint.column}: {hint.code} {hint.message}\n    fix: {hint.fix}"
        for hint in hints
    ]
    seen = {hint.file for hint in hints}
    among = f"{len(seen)} of {num_files} files" if num_files > 1 else "1 file"
    nothing = f"Nothing found in {num_files} file{'s' if num_files > 1 else ''}."
    count = f"Found {len(hints)} hint{'s' if len(hints) > 1 else ''} in {among}."
    return "\n".join([*lines, count if hints else nothing]) + "\n"


def render_hints_json(hints: Sequence[Hint]) -> str:
    """Returns `hints` as a JSON list of objects."""
    return json.dumps([asdict(hint) for hint in hints], indent=2) + "\n"
