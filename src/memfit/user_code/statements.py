"""Which statement of the user's code is at a line, adds to a container, or calls a function."""

import ast
import functools
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from memfit.user_code.frames import display_path

# Calls by which a container grows.
_ADDING = frozenset(
    {"add", "append", "appendleft", "extend", "insert", "setdefault", "update", "assign"}
    | {"put", "put_nowait", "push", "write", "store", "record", "send"}
)
# Calls that are known to start no device, by how their names end or what they have inside.
_HARMLESS = (".set_random_seed", ".Input", "Input")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement in the user's own code.

    Attributes:
        file: The file, as Python names it.
        line: Its first line.
        text: Its source, on one line.
    """

    file: str
    line: int
    text: str


class Place(NamedTuple):
    """A place in the user's code: the file as the user names it, and the statement there."""

    file: str
    line: int
    statement: str | None


@functools.lru_cache(maxsize=1024)
def statement_at(file: str, line: int) -> Statement | None:
    """Returns the innermost statement of `file` that covers `line`.

    Of a compound statement (a loop, a function with decorators) only its first line counts.
    """
    tree = _parse(file)
    covering = [
        node
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.stmt) and _first_line(node) <= line <= (node.end_lineno or 0)
    ]
    if not covering:
        return None
    node = max(covering, key=lambda one: (_first_line(one), -(one.end_lineno or 0)))
    if hasattr(node, "body"):
        lines = Path(file).read_text(encoding="utf-8").splitlines()
        return Statement(file, _first_line(node), lines[_first_line(node) - 1].strip())
    return Statement(file, _first_line(node), _one_line(ast.unparse(node)))


def place_at(file: str, line: int) -> Place:
    """Returns the statement around a line, as a user in the working folder would name it."""
    found = statement_at(file, line)
    return Place(display_path(file), found.line if found else line, found.text if found else None)


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


def find_assignment(file: str, name: str) -> Statement | None:
    """Returns the first statement in `file` that gives `name` its value."""
    tree = _parse(file)
    for node in ast.walk(tree) if tree is not None else ():
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        elif isinstance(node, ast.With | ast.AsyncWith):
            targets = [one.optional_vars for one in node.items if one.optional_vars]
        flat = [one for target in targets for one in ast.walk(target) if isinstance(one, ast.expr)]
        if any(_is_named(one, name) and not isinstance(one, ast.Subscript) for one in flat):
            return statement_at(file, node.lineno)  # type: ignore[attr-defined]  # a statement
    return None


@functools.lru_cache(maxsize=256)
def find_call(file: str, function: str) -> Statement | None:
    """Returns the first statement in `file` that calls `function`, such as `"gc.disable"`."""
    tree = _parse(file)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and ast.unparse(node.func) == function:
            return statement_at(file, node.lineno)
    return None


def find_definition(file: str, name: str) -> Statement | None:
    """Returns where `file` defines the function called `name`, its decorators included."""
    tree = _parse(file)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            return Statement(file, first, f"def {name}({ast.unparse(node.args)})")
    return None


def find_first_call(frame: FrameType | None, packages: Collection[str]) -> Statement | None:
    """Returns the first statement above the line that `frame` runs that calls one of `packages`.

    Only at the top level of a script, where lines run in their order; `None` anywhere else.
    """
    if frame is None or frame.f_code.co_name != "<module>":
        return None
    file = frame.f_code.co_filename
    tree = _parse(file)
    if tree is None:  # typed into a prompt or a notebook
        return None
    names = set(_imported_names(tree, packages))
    lines = [call.lineno for call in _calls(tree) if _root(call.func) in names]
    above = [line for line in lines if line < frame.f_lineno]
    return statement_at(file, min(above)) if above else None


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def _collect(node: ast.AST, name: str, depth: int, found: list[tuple[int, ast.stmt]]) -> None:
    for child in ast.iter_child_nodes(node):
        deeper = depth + isinstance(child, ast.For | ast.While | ast.FunctionDef | ast.Lambda)
        is_simple = isinstance(
            child, ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return
        )
        if is_simple and isinstance(child, ast.stmt) and _adds_to(child, name):
            found.append((depth, child))
        else:
            _collect(child, name, deeper, found)


def _adds_to(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, ast.AugAssign):
        return _is_named(statement.target, name) or _is_item_of(statement.target, name)
    if isinstance(statement, ast.Assign) and any(
        _is_item_of(target, name) or (_is_named(target, name) and _mentions(statement.value, name))
        for target in statement.targets
    ):
        return True
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


def _imported_names(tree: ast.Module, packages: Collection[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                package = alias.name.split(".")[0]
                if package in packages:
                    yield alias.asname or package
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in packages:
            yield from (alias.asname or alias.name for alias in node.names)


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """Calls that run when the script is read: none inside functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.Call):
            name = ast.unparse(child.func)
            if "config" not in name and not name.endswith(_HARMLESS):
                yield child
        yield from _calls(child)


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None
