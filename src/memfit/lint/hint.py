"""What lint looks for, and what it says when it sees it."""

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that lint looks for.

    Attributes:
        code: Such as `"MF201"`; the hundreds are the family.
        name: A few words, such as `"tensor-kept"`.
        cause: The cause that a running training would show, `"folklore"`, or `None` where
            memory is not what suffers.
        summary: One sentence on what is wrong.
        url: Where it is discussed upstream, if it is.
    """

    code: str
    name: str
    cause: str | None
    summary: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """A rule that holds for a piece of code.

    Attributes:
        rule: The rule.
        node: The piece of code.
        message: One sentence with the user's own names in it.
        fix: What to write instead.
    """

    rule: Rule
    node: ast.AST
    message: str
    fix: str


@dataclass(frozen=True, slots=True)
class Hint:
    """One line of lint's answer.

    Attributes:
        code: Code of the rule.
        message: One sentence with the user's own names in it.
        file: The file as it was named.
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
