"""Which statement is at a line, adds to a container, or calls a framework first."""

import sys

import pytest

from memfit.user_code.statements import (
    find_adding_statement,
    find_assignment,
    find_call,
    find_definition,
    find_first_call,
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


def test_an_attribute_is_not_a_variable_of_the_same_name(find):
    source = (
        "outputs.append(1)\nclass Logger:\n    def log(self, x):\n        self.outputs.append(x)\n"
    )

    assert find(source, ".outputs") == (4, "self.outputs.append(x)")
    assert find(source, "outputs") == (1, "outputs.append(1)")


def test_the_statement_that_runs_most_often_comes_first(find):
    source = "kept.append(0)\nfor epoch in e:\n    for x in data:\n        kept.append(x)\n"

    assert find(source, "kept")[0] == 4


def test_a_statement_over_several_lines_becomes_one_line(find):
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
def test_a_line_belongs_to_the_statement_around_it(written, line, begin, text):
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


HERE = "frames.append(sys._getframe())"


def first_call(tmp_path, text):
    path = tmp_path / "train.py"
    path.write_text(text)
    frames = []
    exec(compile(text, str(path), "exec"), {"sys": sys, "frames": frames, "keras": None})
    found = find_first_call(frames[0], {"keras", "jax"})
    return (found.line, found.text) if found else None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"import json as keras\nkeras.dumps(1)\n{HERE}", None),
        (f"from jax import Array\n{HERE}\n", None),
        (f"import jax\n{HERE}\njax.devices()\n", None),
        (f"import jax\njax.config.update('jax_enable_x64', False)\n{HERE}", None),
        (f"import jax\nmade = [\n    jax.jit(len),\n]\n{HERE}", (2, "made = [jax.jit(len)]")),
        (f"from jax import jit as j\nif True:\n    j(len)\n{HERE}", (3, "j(len)")),
        (f"import jax\ndef main():\n    jax.jit(len)\n{HERE}", None),
        (f"import jax\njax.jit(len)\ndef main():\n    {HERE}\nmain()", None),
    ],
)
def test_the_first_call_above_is_found_where_lines_run_in_order(tmp_path, text, found):
    assert first_call(tmp_path, text) == found


def test_what_was_typed_into_a_prompt_has_no_lines_to_look_at():
    frames = []
    exec(compile(HERE, "<stdin>", "exec"), {"sys": sys, "frames": frames})

    assert find_first_call(frames[0], {"keras"}) is None
    assert find_first_call(None, {"keras"}) is None
