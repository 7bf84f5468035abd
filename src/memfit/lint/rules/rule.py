"""A rule of lint, and a match of it in a script."""

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """One pattern that lint looks for.

    Attributes:
        code: Such as `"MF201"`; the hundreds are the family.
        name: A few words, such as `"tensor-kept"`.
        cause: The cause that `memfit run` would report, `"folklore"`, or `None` where the
            pattern does not affect memory.
        summary: One sentence on what is wrong.
        url: Where it is discussed upstream, if it is.
    """

    code: str
    name: str
    cause: str | None
    summary: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """A place in a script where a rule applies.

    Attributes:
        rule: The rule.
        node: The code that it applies to.
        message: One sentence with the user's own names in it.
        fix: What to write instead.
    """

    rule: Rule
    node: ast.AST
    message: str
    fix: str
