"""The table of all rules, and the cause that each one prevents at run time."""

from memfit.lint.rules import FAMILIES
from memfit.lint.rules.rule import Rule

NOT_READ = Rule(
    "MF001",
    "not-read",
    None,
    "The file cannot be parsed as Python, so nothing in it was checked.",
)
RULES: tuple[Rule, ...] = tuple(
    sorted(
        (NOT_READ, *(rule for family in FAMILIES for rule in family.RULES)),
        key=lambda rule: rule.code,
    )
)


def rule_for(cause: str) -> tuple[str, ...]:
    """Returns the codes of the rules that find `cause` before the script runs.

    Example:
    >>> rule_for("retracing")
    ('MF302',)
    """
    return tuple(rule.code for rule in RULES if rule.cause == cause)
