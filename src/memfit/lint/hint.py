"""A hint: one line of what lint prints."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hint:
    """One line of what lint prints.

    Attributes:
        code: Code of the rule.
        message: One sentence with the user's own names in it.
        file: The file as the user named it.
        line: Line in it, from 1.
        column: Character in the line, from 1.
        fix: What to write instead.
        url: Where it is discussed upstream, if it is.
    """

    code: str
    message: str
    file: str
    line: int
    column: int
    fix: str
    url: str | None = None
