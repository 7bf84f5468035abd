"""Hints as text and as JSON."""

import json

from memfit.lint import Hint
from memfit.report.lint import render_hints, render_hints_json

HINT = Hint("MF601", "the collector is off", "train.py", 3, 9, "delete the line")


def test_a_hint_is_a_line_that_editors_read_with_its_fix_below():
    assert render_hints([HINT], num_files=1) == (
        "train.py:3:9: MF601 the collector is off\n"
        "    fix: delete the line\n"
        "Found 1 hint in 1 file.\n"
    )


def test_the_count_says_in_how_many_files():
    text = render_hints([HINT, HINT], num_files=5)

    assert text.endswith("\nFound 2 hints in 1 of 5 files.\n")


def test_nothing_found_says_where_it_was_looked():
    assert render_hints([], num_files=1) == "Nothing found in 1 file.\n"
    assert render_hints([], num_files=3) == "Nothing found in 3 files.\n"


def test_json_is_a_list_of_objects():
    assert json.loads(render_hints_json([HINT])) == [
        {
            "code": "MF601",
            "message": "the collector is off",
            "file": "train.py",
            "line": 3,
            "column": 9,
            "fix": "delete the line",
            "url": None,
        }
    ]
    assert json.loads(render_hints_json([])) == []
