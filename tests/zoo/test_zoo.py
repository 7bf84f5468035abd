"""The list of the zoo agrees with its files."""

import ast
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from memfit.diagnose.causes.catalogue import CATALOGUE

ZOO = Path(__file__).parent
LISTING = tomllib.loads((ZOO / "zoo.toml").read_text())
SCRIPTS = LISTING["script"]
HEALTHY = LISTING["healthy"]
BACKENDS = {"tensorflow", "jax", "torch"}
CODES = {code for code, cause in CATALOGUE.items() if cause.explains_growth}

each_script = pytest.mark.parametrize("entry", SCRIPTS, ids=lambda entry: entry["name"])
each_healthy = pytest.mark.parametrize("entry", HEALTHY, ids=lambda entry: entry["name"])


def imported(path):
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    return names


@each_script
def test_both_twins_exist_and_differ(entry):
    folder = ZOO / entry["name"]

    assert (folder / "leaking.py").read_text() != (folder / "clean.py").read_text()


@each_script
def test_lines_hold_their_statements(entry):
    for cause in entry["cause"]:
        assert cause["at"]
        for place in cause["at"]:
            lines = (ZOO / entry["name"] / place["file"]).read_text().splitlines()
            assert lines[place["line"] - 1].strip() == place["statement"]


@each_script
def test_entry_is_complete(entry):
    assert entry["backend"] in BACKENDS
    assert entry["style"]
    assert entry["description"]
    assert all(cause["holder"] for cause in entry["cause"])
    assert {cause["code"] for cause in entry["cause"]} <= CODES


@each_healthy
def test_healthy_file_exists(entry):
    assert (ZOO / "healthy" / entry["file"]).is_file()
    assert entry["backend"] in BACKENDS


def test_every_folder_and_file_is_listed():
    folders = {path.name for path in ZOO.iterdir() if (path / "leaking.py").exists()}
    files = {path.name for path in (ZOO / "healthy").glob("*.py")}

    assert folders == {entry["name"] for entry in SCRIPTS}
    assert files == {entry["file"] for entry in HEALTHY}


def test_every_cause_occurs_twice():
    counts = Counter(cause["code"] for entry in SCRIPTS for cause in entry["cause"])

    assert {code: counts[code] for code in CODES if counts[code] < 2} == {}


# Real trainings elsewhere in `make test`: tests/backends/test_observed_training.py, and
# tests/integration/test_run.py.
ELSEWHERE = {"retracing", "data"}


def family(code):
    return CATALOGUE[code].family


def test_those_of_make_test_have_every_family_of_causes_and_every_backend():
    scripts = [entry for entry in SCRIPTS if entry.get("few")]
    healthy = [entry for entry in HEALTHY if entry.get("few")]

    codes = [cause["code"] for entry in scripts for cause in entry["cause"]]
    assert set(map(family, codes)) | ELSEWHERE == set(map(family, CODES))
    assert {entry["backend"] for entry in scripts} == BACKENDS
    assert {entry["backend"] for entry in healthy} == BACKENDS
    assert all(entry.get("quick") for entry in (*scripts, *healthy))


def test_there_are_enough_of_each_kind():
    backends = Counter(entry["backend"] for entry in SCRIPTS)
    several = [entry for entry in SCRIPTS if len(entry["cause"]) > 1]
    packages = [e for e in SCRIPTS if len(list((ZOO / e["name"]).glob("*.py"))) > 2]

    assert len(SCRIPTS) >= 44
    assert min(backends["jax"], backends["torch"]) >= 10
    assert len(several) >= 4
    assert len(packages) >= 3
    assert len(HEALTHY) >= 15
    assert {entry["backend"] for entry in HEALTHY} == BACKENDS


def test_scripts_know_nothing_of_the_tool():
    scripts = [path for path in ZOO.rglob("*.py") if path.parent != ZOO]

    for path in scripts:
        text = path.read_text()
        assert "memfit" not in imported(path)
        assert "memfit" not in text
        assert "leak" not in text.replace("leaking.py", "")
