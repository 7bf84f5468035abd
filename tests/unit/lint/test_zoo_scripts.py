"""The zoo as lint sees it: many leaks are in the code, and no clean twin is named."""

from pathlib import Path

import pytest

from memfit.lint import lint_source, rule_for

ZOO = Path(__file__).parents[2] / "zoo"
CLEAN = [*ZOO.glob("*/clean.py"), *ZOO.glob("healthy/*.py")]


@pytest.mark.parametrize("path", CLEAN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_nothing_but_folklore_is_seen_in_a_clean_script(path):
    codes = {hint.code for hint in lint_source(path.read_text())}

    assert codes <= set(rule_for("folklore"))


def test_a_third_of_the_leaks_are_seen_before_they_run():
    folders = [path.parent for path in ZOO.glob("*/leaking.py")]
    seen = [
        folder
        for folder in folders
        if any(
            hint.code not in rule_for("folklore")
            for path in folder.glob("*.py")
            for hint in lint_source(path.read_text())
        )
    ]

    assert len(seen) >= len(folders) / 3
