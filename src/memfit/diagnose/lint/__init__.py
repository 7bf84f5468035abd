"""Static hints: what can be seen in a script before it runs. Text in, hints out; pure."""

from memfit.diagnose.lint.check import lint_source as lint_source
from memfit.diagnose.lint.check import unreadable as unreadable
from memfit.diagnose.lint.hint import Hint as Hint
from memfit.diagnose.lint.hint import Rule as Rule
from memfit.diagnose.lint.rules import RULES as RULES
from memfit.diagnose.lint.rules import rule_for as rule_for

__all__ = ["RULES", "Hint", "Rule", "lint_source", "rule_for", "unreadable"]
