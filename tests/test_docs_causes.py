"""What `memfit explain` says of every code, and docs/causes.md of all, is true."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from memfit.agent import examiner
from memfit.diagnose.causes.catalogue import CATALOGUE
from memfit.lint import RULES, lint_source
from memfit.report.explanation import list_codes, read_explanation

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "causes.md").read_text()
SECTIONS = {code: read_explanation(code) for code in list_codes()}
_EXAMPLES = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Each section says these, in this order; what does not help only where that was measured.
_PARTS = ("**What happens.**", "**How memfit knows.**", "**What does not help.**", "**Lint.**")
# What it says of the probes, on one line.
PROBES = " ".join(PAGE.partition("## The probes")[2].partition("## Shares")[0].split())
_CODE = re.compile(r"[a-z]+(-[a-z]+)+")


def codes_in(tree):
    """Constants that look like codes, and what is given as `code=`."""
    for node in ast.walk(tree):
        match node:
            case ast.keyword(arg="code", value=ast.Constant(value=code)):
                yield code
            case ast.Constant(value=str(text)) if _CODE.fullmatch(text):
                yield text


def codes_of_source():
    diagnose = ROOT / "src" / "memfit" / "diagnose"
    checks = {*(diagnose / "causes").glob("*.py")} - {diagnose / "causes" / "catalogue.py"}
    modules = (*checks, diagnose / "killed.py", diagnose / "limits.py")
    return {code for module in modules for code in codes_in(ast.parse(module.read_text()))}


def lint_codes_of(cause):
    return {rule.code for rule in RULES if rule.cause == cause}


def test_every_code_of_a_finding_has_its_row_and_the_other_way_round():
    assert set(CATALOGUE) == codes_of_source()


def test_every_row_has_its_page_and_the_other_way_round():
    pages = (ROOT / "src" / "memfit" / "report" / "explained").glob("*.md")

    assert {page.stem for page in pages} == set(CATALOGUE)


def test_every_row_that_explains_growth_has_its_pair_in_the_zoo_and_the_other_way_round():
    scripts = tomllib.loads((ROOT / "tests" / "zoo" / "zoo.toml").read_text())["script"]
    rows = {code for code, cause in CATALOGUE.items() if cause.explains_growth}

    assert {cause["code"] for script in scripts for cause in script["cause"]} == rows


def test_every_cause_that_a_rule_of_lint_names_is_explained():
    causes = {rule.cause for rule in RULES} - {None, "folklore"}

    assert causes - set(SECTIONS) == set()


@pytest.mark.parametrize("code", SECTIONS)
def test_an_explanation_says_everything_in_order(code):
    found = re.findall(r"^\*\*[^*]+\.\*\*", SECTIONS[code], re.MULTILINE)

    assert tuple(found) == tuple(part for part in _PARTS if part in found or "help" not in part)


@pytest.mark.parametrize("code", SECTIONS)
def test_an_explanation_gives_figures_in_words_and_not_what_was_not_measured(code):
    text = " ".join(SECTIONS[code].split())

    assert "Nothing was measured" not in text
    assert not re.search(r"[\d.]+( MB)?, fixed \d", text)


@pytest.mark.parametrize("code", SECTIONS)
def test_an_explanation_names_the_rules_that_find_its_cause(code):
    named = re.findall(r"MF\d+", SECTIONS[code].partition("**Lint.**")[2])

    assert set(named) == lint_codes_of(code)


@pytest.mark.parametrize("code", [code for code in SECTIONS if lint_codes_of(code)])
def test_lint_sees_the_first_example_and_not_the_second(code):
    before, after = _EXAMPLES.findall(SECTIONS[code])

    assert lint_codes_of(code) & {hint.code for hint in lint_source(before)}
    assert lint_source(after) == ()


@pytest.mark.parametrize("code", [code for code in SECTIONS if not lint_codes_of(code)])
def test_the_other_examples_are_python_too(code):
    for example in _EXAMPLES.findall(SECTIONS[code]):
        ast.parse(example)


def test_the_page_of_causes_names_every_code_of_growth():
    named = set(re.findall(r"explained/([a-z-]+)\.md\)", PAGE))

    assert named == set(SECTIONS)


def test_prices_of_the_probes_are_those_of_the_examiner():
    for price in (
        f"{examiner._SHARE_OF_TIME:.1%} of the time",
        f"{examiner._SHARE_WHILE_RISING:.0%} of the time",
        f"{examiner._MOST_S:g} s",
        f"{examiner._PATIENCE_S:g} s",
        f"{2 * examiner._TRACE_S:g} s",
    ):
        assert price in PROBES, price


def test_steps_of_the_probes_are_those_of_the_examiner():
    steps = examiner.Examiner(lambda _found: None)._next_steps
    names = {"_census": "census", "_collect": "collect", "_trim": "trim", "_start_trace": "trace"}

    order = ", ".join(f"{names[step.__name__]} {cost_s:g}" for step, cost_s in steps)

    assert order in PROBES
