"""Keras's private names are used in `memfit.keras_private` alone, and its table has them all."""

import ast
from pathlib import Path

import pytest

import memfit
from memfit.keras_private.names import private_names

ROOT = Path(memfit.__file__).parent
HOME = ROOT / "keras_private"
MODULES = sorted(ROOT.rglob("*.py"))
LAST_PARTS = {one.path.rpartition(".")[2] for one in private_names()}
PRIVATE = {name for name in LAST_PARTS if name.startswith("_")}
# Names that other packages have, too: results of multiprocessing.
SHARED = {"_value"}


def name_of(path):
    return str(path.relative_to(ROOT))


def private_uses(tree, names):
    """Gives line and name of what is used of Keras: attributes, names in strings, `keras.src`."""
    documentation = {id(text) for text in find_documentation(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in names and not is_own(node):
            yield node.lineno, node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_private = node.value in names or "keras.src" in node.value
            if is_private and id(node) not in documentation:
                yield node.lineno, node.value
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("keras.src"):
            yield node.lineno, node.module
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, one.name) for one in node.names if "keras.src" in one.name)


def is_own(node):
    """Whether an attribute is read of `self`: that of a class of memfit."""
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def find_documentation(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


@pytest.mark.parametrize(
    "path", [path for path in MODULES if HOME not in path.parents], ids=name_of
)
def test_a_module_uses_no_private_name_of_keras(path):
    uses = list(private_uses(ast.parse(path.read_text()), PRIVATE - SHARED))

    assert uses == []


def underscore_names(function):
    joined = [one for one in ast.walk(function) if isinstance(one, ast.JoinedStr)]
    parts_of_text = {id(part) for one in joined for part in one.values}
    for node in ast.walk(function):
        if id(node) in parts_of_text:
            continue
        if isinstance(node, ast.Attribute) and not is_own(node):
            name = node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value
        else:
            continue
        if name.startswith("_") and not name.startswith("__") and name.isidentifier():
            yield name


@pytest.mark.parametrize("path", sorted(HOME.glob("*.py")), ids=lambda path: path.stem)
def test_the_table_has_every_private_name_that_a_function_uses(path):
    tree = ast.parse(path.read_text())
    known = {}
    for one in private_names():
        known.setdefault(one.used_by, set()).add(one.path.rpartition(".")[2])

    for thing in (one for one in tree.body if isinstance(one, ast.FunctionDef | ast.ClassDef)):
        missing = set(underscore_names(thing)) - known.get(thing.name, set())
        assert missing == set(), thing.name


def test_a_private_name_of_keras_is_seen_in_all_its_forms():
    text = """
from keras.src import backend
import keras.src.layers
model._flatten_layers()
hasattr(model, "_flatten_layers")
self._flatten_layers()
"model._flatten_layers in a docstring"
"""

    assert [line for line, _ in private_uses(ast.parse(text), PRIVATE)] == [2, 3, 4, 5]
