"""Whose code it is, and which statement adds to a container."""

import json
import sys
import sysconfig
from pathlib import Path

import pytest

import memfit
from memfit.user_code import frames
from memfit.user_code.frames import (
    find_adding_statement,
    find_assignment,
    find_call,
    find_definition,
    find_running,
    is_importing,
    is_user_file,
    statement_at,
)


@pytest.fixture
def find(tmp_path):
    def find(source, name):
        path = tmp_path / f"train{len(list(tmp_path.iterdir()))}.py"
        path.write_text(source)
        found = find_adding_statement(str(path), name)
        return found and (found.line, found.text)

    return find


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


def test_an_import_that_is_under_way_is_told_from_code_that_runs(tmp_path, monkeypatch):
    seen = []
    (tmp_path / "looked_at.py").write_text("import sys\nsys.look()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "look", lambda: seen.append(sys._getframe(1)), raising=False)
    monkeypatch.setattr(frames, "is_user_file", lambda file: file == __file__)

    import looked_at  # noqa: F401

    assert is_importing(seen[0])
    assert not is_importing(sys._getframe())


@pytest.mark.parametrize(
    "statement",
    [
        "kept.append(x)",
        "kept.extend([x])",
        "kept += [x]",
        "kept[i] = x",
        "kept['train'].append(x)",
        "kept.setdefault(i, []).append(x)",
        "kept = np.concatenate([kept, x])",
    ],
)
def test_every_way_to_add_to_a_name_is_found(find, statement):
    source = f"kept = make()\nfor i, x in data:\n    {statement}\nprint(kept)\n"

    assert find(source, "kept")[0] == 3


def test_an_attribute_is_told_from_a_variable_of_the_same_name(find):
    source = (
        "outputs.append(1)\nclass Logger:\n    def log(self, x):\n        self.outputs.append(x)\n"
    )

    assert find(source, ".outputs") == (4, "self.outputs.append(x)")
    assert find(source, "outputs") == (1, "outputs.append(1)")


def test_the_statement_that_runs_most_often_comes_first(find):
    source = "kept.append(0)\nfor epoch in e:\n    for x in data:\n        kept.append(x)\n"

    assert find(source, "kept")[0] == 4


def test_a_statement_over_several_lines_is_told_in_one(find):
    source = "kept.append(\n    model(\n        x,\n    )\n)\n"

    assert find(source, "kept") == (1, "kept.append(model(x))")


def test_reading_from_a_container_is_not_adding(find):
    assert find("total = sum(kept)\nother.append(kept[0])\n", "kept") is None


@pytest.mark.parametrize("source", ["def broken(:\n", "x = 1\n"])
def test_nothing_is_found_where_there_is_nothing(find, source):
    assert find(source, "kept") is None


def test_a_file_that_is_gone_gives_nothing():
    assert find_adding_statement("/no/such/file.py", "kept") is None


def test_a_cached_function_is_found_with_its_decorator(tmp_path):
    path = tmp_path / "data.py"
    path.write_text("import functools\n\n@functools.cache\ndef load(index):\n    return index\n")

    found = find_definition(str(path), "load")

    assert (found.line, found.text) == (3, "def load(index)")


def test_a_callback_written_as_a_lambda_adds_too(find):
    source = "kept = []\nkeep = Callback(\n    on_end=lambda epoch: kept.append(weights()),\n)\n"

    assert find(source, "kept")[0] == 2


SOURCE = """
class Loader:
    def __init__(self, path):
        self.rows = open_map(
            path,
        )

    @cached
    def load(self):
        with Reader() as reader:
            gc.disable()
        return [row for row in self.rows
                if row]
"""


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "loader.py"
    path.write_text(SOURCE)
    return str(path)


@pytest.mark.parametrize(
    ("line", "begin", "text"),
    [
        (5, 4, "self.rows = open_map(path)"),
        (8, 8, "@cached"),
        (10, 10, "with Reader() as reader:"),
        (11, 11, "gc.disable()"),
        (13, 12, "return [row for row in self.rows if row]"),
    ],
)
def test_a_line_is_told_as_the_statement_around_it(written, line, begin, text):
    found = statement_at(written, line)

    assert (found.line, found.text) == (begin, text)


def test_a_line_outside_of_any_statement_is_nothing(written):
    assert statement_at(written, 1) is None


@pytest.mark.parametrize(("name", "line"), [(".rows", 4), ("reader", 10), ("nobody", None)])
def test_what_gives_a_name_its_value_is_found(written, name, line):
    found = find_assignment(written, name)

    assert (found and found.line) == line


def test_a_call_is_found_by_what_is_called(written):
    assert find_call(written, "gc.disable").line == 11
    assert find_call(written, "gc.enable") is None


def test_what_an_object_does_in_its_own_init_is_asked_for_elsewhere():
    class Thing:
        def __init__(self):
            self.inside = find_running(sys._getframe())
            self.asked = find_running(sys._getframe(), makes=self)

    thing = Thing()

    assert thing.inside[1] == Thing.__init__.__code__.co_firstlineno + 1
    assert thing.asked[1] == Thing.__init__.__code__.co_firstlineno + 4
