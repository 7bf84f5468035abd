"""docs/lint.md says what the rules are, and its examples are true."""

import re
from pathlib import Path

import pytest

from memfit.lint import RULES, lint_source

PAGE = (Path(__file__).parents[3] / "docs" / "lint.md").read_text()
_SECTION = re.compile(
    r"^### (?P<code>MF\d+) (?P<name>[a-z-]+)\n(?P<text>.*?)(?=^### |^## |\Z)",
    re.DOTALL | re.MULTILINE,
)
SECTIONS = {match["code"]: match for match in _SECTION.finditer(PAGE)}
_EXAMPLES = re.compile(r"^```python[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_table_is_the_table_of_rules():
    rows = re.findall(r"^\| \[(MF\d+)\]\(#\S+\) \| (\S+) \| (\S+) \| (.+) \|$", PAGE, re.MULTILINE)

    assert rows == [
        (rule.code, rule.name, f"`{rule.cause}`" if rule.cause else "-", rule.summary)
        for rule in RULES
    ]


def test_every_rule_has_a_section_under_its_name():
    assert {code: match["name"] for code, match in SECTIONS.items()} == {
        rule.code: rule.name for rule in RULES
    }


@pytest.mark.parametrize("code", [rule.code for rule in RULES])
def test_the_first_example_shows_the_rule_and_the_second_is_fixed(code):
    before, after = _EXAMPLES.findall(SECTIONS[code]["text"])

    assert {hint.code for hint in lint_source(before)} == {code}
    assert lint_source(after) == ()
