"""What the documents name is there."""

import re
from pathlib import Path

import pytest

import memfit
from memfit.cli import COMMANDS, make_parser

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()


def options_of(command):
    (commands,) = (
        action.choices for action in make_parser()._actions if hasattr(action.choices, "keys")
    )
    return {option for action in commands[command]._actions for option in action.option_strings}


def test_every_command_that_readme_names_exists_and_the_other_way_round():
    named = set(re.findall(r"`memfit ([a-z]+)", README))

    assert named == set(COMMANDS)


def test_every_option_of_run_that_its_page_names_exists_and_the_other_way_round():
    page = (ROOT / "docs" / "what-it-does.md").read_text()
    described = page.partition("`memfit run` takes")[2].partition("Its exit code")[0]
    named = set(re.findall(r"`(--[a-z-]+)", described))

    assert named == {one for one in options_of("run") if one.startswith("--")} - {"--help"}


def test_every_make_target_that_readme_names_exists():
    makefile = (ROOT / "Makefile").read_text()

    for target in set(re.findall(r"make ([a-z-]+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_top_of_readme_shows_the_two_commands():
    top = README.splitlines()[:20]

    assert any("make demo" in line for line in top)
    assert any("make test" in line for line in top)


def test_everything_public_that_readme_names_is_there():
    for name in re.findall(r"memfit\.([A-Za-z_]+)\(", README):
        assert hasattr(memfit, name)


def test_readme_is_one_page():
    assert len(README.splitlines()) <= 100


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "docs/decisions.md"])
def test_every_module_that_the_page_names_exists(page):
    package = ROOT / "src" / "memfit"
    names = set(re.findall(r"`([a-z_/]+\.py)`", (ROOT / page).read_text()))

    missing = [
        name
        for name in names
        if not (ROOT / name).exists() and not list(package.rglob(f"**/{Path(name).name}"))
    ]

    assert missing == []


def test_architecture_is_one_page():
    assert len(ARCHITECTURE.splitlines()) <= 80
