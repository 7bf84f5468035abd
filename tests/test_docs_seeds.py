"""The examples of the seeds are what their list says, and docs/seeds.md is what was measured."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from seeds import HEAD, name_rows, title  # noqa: E402
from seeds_runs import BACKENDS, SEEDS, VARIANTS, load_examples  # noqa: E402

EXAMPLES = load_examples()
SCRIPTS = [SEEDS / one.name / f"{script}.py" for one in EXAMPLES for script in one.scripts]
FAILING = [one for one in EXAMPLES if one.fails]
# Belong to an example, and are run for a figure of their own.
MEASURING = {"one_update.py", "step_memory.py"}
PAGE = (ROOT / "docs" / "seeds.md").read_text()
CLAIMS = [
    " ".join(claim.split())
    for claim in re.findall(
        r"^- (.*?)(?=^- |^\n|\Z)",
        PAGE.partition("## What the rows say\n\n")[2].partition("\n## ")[0],
        re.DOTALL | re.MULTILINE,
    )
]
_ROW = re.compile(r"`([a-z0-9-]+(?:: [a-z ]+)?)` on (tensorflow|jax|torch)")

each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one.name)
each_script = pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: f"{p.parent.name}-{p.stem}")


def table_of(page):
    """The cells of the first table."""
    lines = page.partition("| example ")[1:]
    rows = "".join(lines).partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def expected_rows():
    return [(title(name, rest), backend) for name, backend, *rest in name_rows(EXAMPLES, BACKENDS)]


@each_script
def test_a_script_is_short_python_that_says_what_it_is_and_prints_its_loss(path):
    text = path.read_text()

    assert ast.get_docstring(ast.parse(text))
    assert 'print("final loss", ' in text
    assert len(text.splitlines()) <= 60


def test_every_folder_and_script_is_listed():
    found = {path for path in SEEDS.glob("*/*.py") if path.name not in MEASURING}

    assert found == set(SCRIPTS)


@each_example
def test_an_entry_is_complete(example):
    assert example.seed in {"000", "001", "002"}
    assert example.given
    assert example.shows
    assert set(example.backends) <= set(BACKENDS)
    assert "tensorflow" in example.backends


@each_example
def test_only_the_scripts_with_memfit_know_of_it(example):
    for script in example.scripts:
        text = (SEEDS / example.name / f"{script}.py").read_text()
        names_it = "import memfit" in text or "finding" in text.splitlines()[0]
        assert names_it == (script == "with_memfit"), script


def test_all_nine_examples_of_the_documents_are_there():
    given = {(one.seed, one.given) for one in EXAMPLES}

    for number in "123":
        assert ("000", f"example {number}") in given
        assert ("001", f"method {number}") in given
        assert ("002", f"example {number}") in given


@pytest.mark.parametrize("example", FAILING, ids=lambda one: one.name)
def test_what_fails_as_given_names_its_error_and_has_a_twin_that_runs(example):
    assert set(example.fails) == {"error", "says", "why"}
    assert "made_to_run" in example.also


ONE_AFTER_ANOTHER = """
import runpy, sys, traceback
try:
    runpy.run_path(sys.argv[1])
except Exception:
    traceback.print_exc()
runpy.run_path(sys.argv[2])
"""


def test_clear_session_fails_as_given_as_its_entry_says_and_runs_by_hand():
    (example,) = (one for one in FAILING if one.name == "clear-session")
    scripts = (SEEDS / example.name / f"{script}.py" for script in ("as_given", "by_hand"))

    done = subprocess.run(
        [sys.executable, "-c", ONE_AFTER_ANOTHER, *map(str, scripts)],
        env={**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert f"{example.fails['error']}: {example.fails['says']}" in done.stderr
    assert len(re.findall(r"^final loss \d", done.stdout, re.MULTILINE)) == 1


def test_the_table_has_a_row_for_each_example_and_backend():
    head, _, *rows = table_of(PAGE)

    assert tuple(head) == HEAD
    assert [(row[0], row[1]) for row in rows] == expected_rows()


def test_a_cell_has_a_value_for_each_script_of_its_row():
    _, _, *rows = table_of(PAGE)

    for row, (_, _, *scripts) in zip(rows, name_rows(EXAMPLES, BACKENDS), strict=True):
        assert {len(cell.split(" / ")) for cell in row[3:]} == {len(scripts)}, row
        assert len(scripts) in {1, len(VARIANTS)}


def test_what_fails_as_given_failed_so_in_the_table():
    _, _, *rows = table_of(PAGE)
    verdicts = {(row[0], row[1]): row[HEAD.index("verdict")] for row in rows}

    for example in FAILING:
        told = verdicts[example.name, "tensorflow"].split(" / ")
        assert told[0] == example.fails["error"]
        assert "Error" not in "".join(told[1:])


def test_every_claim_names_a_row_of_the_table_that_was_run():
    _, _, *rows = table_of(PAGE)
    run = {(row[0], row[1]) for row in rows if set(row[3]) - set("- /")}

    assert CLAIMS
    for claim in CLAIMS:
        named = _ROW.findall(claim)
        assert named, claim
        assert set(named) <= run, claim


def test_claims_are_about_every_example_that_was_run():
    _, _, *rows = table_of(PAGE)
    run = {row[0].partition(":")[0] for row in rows if set(row[3]) - set("- /")}
    named = {name.partition(":")[0] for claim in CLAIMS for name, _ in _ROW.findall(claim)}

    assert named == run
