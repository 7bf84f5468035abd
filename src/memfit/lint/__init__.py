"""Hints on a script before it runs: source text in, hints out; pure."""

from memfit.lint.all_rules import RULES as RULES
from memfit.lint.all_rules import rule_for as rule_for
from memfit.lint.check import lint_source as lint_source
from memfit.lint.check import unreadable as unreadable
from memfit.lint.hint import Hint as Hint
from memfit.lint.rules.rule import Rule as Rule

__all__ = ["RULES", "Hint", "Rule", "lint_source", "rule_for", "unreadable"]
