"""The table of all rules, and the runtime cause that each would have prevented."""

from memfit.diagnose.lint import (
    accumulation,
    collector,
    data,
    folklore,
    functions,
    gradients,
    held,
    loads,
    models,
    resources,
    retracing,
    states,
)
from memfit.diagnose.lint.hint import Rule

NOT_READ = Rule(
    "MF001",
    "not-read",
    None,
    "The file is not Python that can be parsed, so nothing in it was looked at.",
)
FAMILIES = (
    data,
    loads,
    held,
    states,
    functions,
    retracing,
    models,
    resources,
    gradients,
    accumulation,
    folklore,
    collector,
)
RULES: tuple[Rule, ...] = tuple(
    sorted(
        (NOT_READ, *(rule for family in FAMILIES for rule in family.RULES)),
        key=lambda rule: rule.code,
    )
)


def rule_for(cause: str) -> tuple[str, ...]:
    """Returns the codes of the rules that would have seen `cause` before the script ran.

    Example:
    >>> rule_for("retracing")
    ('MF302',)
    """
    return tuple(rule.code for rule in RULES if rule.cause == cause)
