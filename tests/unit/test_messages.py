"""What memfit says goes to stderr, and nothing goes wrong where nobody can read it."""

import io
import sys

import pytest

from memfit.messages import say, show_progress


def test_each_line_begins_with_the_name(capsys):
    say("one\ntwo")

    assert capsys.readouterr().err == "memfit: one\nmemfit: two\n"


def test_lines_stay_whole_unless_they_shall_wrap(capsys):
    text = "word " * 30 + "end"

    say(text)
    say(text, wraps=True)

    whole, *wrapped = capsys.readouterr().err.splitlines()
    assert whole == f"memfit: {text}"
    assert all(len(line) <= 80 for line in wrapped)
    assert [line[:8] for line in wrapped] == ["memfit: ", " " * 8, " " * 8]


@pytest.mark.parametrize("stderr", ["closed", "none"])
def test_a_stderr_that_is_closed_or_missing_is_no_error(monkeypatch, stderr):
    stream = None if stderr == "none" else io.StringIO()
    if stream is not None:
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)

    say("nobody reads this")


def test_progress_is_not_shown_where_no_terminal_is(capsys):
    with show_progress(10, "reading") as advance:
        advance(4)

    assert capsys.readouterr().err == ""


def test_a_name_cannot_control_the_terminal(capsys):
    say("cannot write to a\x1b[2Jb\rc\u202e")

    assert capsys.readouterr().err == "memfit: cannot write to a\\x1b[2Jb\\rc\\u202e\n"
