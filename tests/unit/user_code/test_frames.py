"""Whose code it is."""

import json
import sys
import sysconfig
from pathlib import Path

import pytest

import memfit
from memfit.user_code import frames
from memfit.user_code.frames import find_running_line, is_importing, is_user_file


def test_a_script_is_the_users_own(tmp_path):
    assert is_user_file(str(tmp_path / "train.py"))


@pytest.mark.parametrize(
    "file",
    [
        json.__file__,
        pytest.__file__,
        memfit.__file__,
        "<stdin>",
        "<frozen importlib>",
        "/tmp/__autograph_generated_fileab12.py",
    ],
)
def test_libraries_python_and_memfit_are_not(file):
    assert not is_user_file(file)


def test_a_project_inside_the_prefix_is_the_users_own():
    assert is_user_file(str(Path(sysconfig.get_path("data")) / "project" / "train.py"))


def test_an_import_in_progress_is_not_taken_for_running_code(tmp_path, monkeypatch):
    seen = []
    (tmp_path / "imported_module.py").write_text("import sys\nsys.look()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "look", lambda: seen.append(sys._getframe(1)), raising=False)
    monkeypatch.setattr(frames, "is_user_file", lambda file: file == __file__)

    import imported_module  # noqa: F401

    assert is_importing(seen[0])
    assert not is_importing(sys._getframe())


def test_what_an_object_does_in_its_own_init_is_asked_for_elsewhere():
    class Thing:
        def __init__(self):
            self.inside = find_running_line(sys._getframe())
            self.asked = find_running_line(sys._getframe(), makes=self)

    thing = Thing()

    assert thing.inside[1] == Thing.__init__.__code__.co_firstlineno + 1
    assert thing.asked[1] == Thing.__init__.__code__.co_firstlineno + 4
