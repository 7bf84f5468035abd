"""Which code is the person's own, and which statement of it adds to a container."""

import ast
import functools
import os
import site
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

# Calls by which a container grows.
_ADDING = frozenset({"add", "append", "appendleft", "extend", "insert", "setdefault", "update"})


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement in the person's own code.

    Attributes:
        file: The file, as Python names it.
        line: Its first line.
        text: Its source, on one line.
    """

    file: str
    line: int
    text: str


@functools.cache
def is_user_file(file: str) -> bool:
    """Whether `file` was written by the person: no library, no part of Python or memfit."""
    return not file.startswith(("<", *_library_folders()))


def as_typed(file: str) -> str:
    """Returns `file` as a person in the working folder would name it."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def is_user_module(module: ModuleType | None) -> bool:
    """Whether `module` is the person's own. A module that loads itself when asked is not asked."""
    file = module.__dict__.get("__file__") if issubclass(type(module), ModuleType) else None
    return isinstance(file, str) and is_user_file(file)


def is_user_class(kind: type) -> bool:
    """Whether `kind` is a class that the person wrote."""
    return is_user_module(sys.modules.get(kind.__module__))


def find_adding_statement(file: str, name: str) -> Statement | None:
    """Returns the statement in `file` that adds to the container called `name`.

    `name` is a variable or, with a leading dot, an attribute. Where several statements add to
    it, the one in the innermost loop or function comes first: it runs most often.
    """
    tree = _parse(file)
    if tree is None:
        return None
    found: list[tuple[int, ast.stmt]] = []
    _collect(tree, name, 0, found)
    if not found:
        return None
    depth = max(depth for depth, _ in found)
    statement = next(one for level, one in found if level == depth)
    return Statement(file, statement.lineno, _one_line(ast.unparse(statement)))


def find_definition(file: str, name: str) -> Statement | None:
    """Returns where `file` defines the function called `name`, its decorators included."""
    tree = _parse(file)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            return Statement(file, first, f"def {name}({ast.unparse(node.args)})")
    return None


def _collect(node: ast.AST, name: str, depth: int, found: list[tuple[int, ast.stmt]]) -> None:
    for child in ast.iter_child_nodes(node):
        deeper = depth + isinstance(child, ast.For | ast.While | ast.FunctionDef | ast.Lambda)
        is_simple = isinstance(child, ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign)
        if is_simple and isinstance(child, ast.stmt) and _adds_to(child, name):
            found.append((depth, child))
        else:
            _collect(child, name, deeper, found)


def _adds_to(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, ast.AugAssign):
        return _is_named(statement.target, name) or _is_item_of(statement.target, name)
    if isinstance(statement, ast.Assign):
        return any(
            _is_item_of(target, name)
            or (_is_named(target, name) and _mentions(statement.value, name))
            for target in statement.targets
        )
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _ADDING
        and _is_named(node.func.value, name)
        for node in ast.walk(statement)
    )


def _mentions(node: ast.expr, name: str) -> bool:
    """Whether a new value is made of the old one: `a = np.concatenate([a, b])`."""
    return any(isinstance(one, ast.expr) and _is_named(one, name) for one in ast.walk(node))


def _is_item_of(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Subscript) and _is_named(node.value, name)


def _is_named(node: ast.expr, name: str) -> bool:
    while isinstance(node, ast.Subscript):  # an item of it, such as losses["train"]
        node = node.value
    if name.startswith("."):
        return isinstance(node, ast.Attribute) and node.attr == name[1:]
    return isinstance(node, ast.Name) and node.id == name


@functools.lru_cache(maxsize=16)
def _parse(file: str) -> ast.Module | None:
    try:
        return ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return None


def _one_line(text: str) -> str:
    return " ".join(text.split())


@functools.cache
def _library_folders() -> tuple[str, ...]:
    """Where Python, its packages and memfit are, with links followed and as they stand.

    Not the prefix itself: a project may lie in it.
    """
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = [
        str(Path(__file__).parents[1]),
        *(sysconfig.get_path(name) for name in names),
        *site.getsitepackages(),
        site.getusersitepackages(),
    ]
    both = {folder for one in folders for folder in (one, str(Path(one).resolve()))}
    return tuple(f"{folder}{os.sep}" for folder in both)
