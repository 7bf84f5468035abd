"""Which code is the user's own, and which statement of it adds to a container."""

import ast
import functools
import os
import site
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import NamedTuple

_AUTOGRAPH = "__autograph_generated_file"
# Calls by which a container grows.
_ADDING = frozenset(
    {"add", "append", "appendleft", "extend", "insert", "setdefault", "update", "assign"}
    | {"put", "put_nowait", "push", "write", "store", "record", "send"}
)


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
    """A place in the user's code, as it is told: the file as typed, the statement there."""

    file: str
    line: int
    statement: str | None


@functools.cache
def is_user_file(file: str) -> bool:
    """Whether `file` was written by the user: no library, no part of Python or memfit.

    Nor is it code that TensorFlow writes: a copy of a function, in a file of its own.
    """
    return not file.startswith(("<", *_library_folders())) and _AUTOGRAPH not in file


def is_own_file(file: str) -> bool:
    """Whether `file` is a part of memfit."""
    return file.startswith(_own_folder())


def as_typed(file: str) -> str:
    """Returns `file` as a user in the working folder would name it."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def is_user_module(module: ModuleType | None) -> bool:
    """Whether `module` is the user's own. A module that loads itself when asked is not asked."""
    file = module.__dict__.get("__file__") if issubclass(type(module), ModuleType) else None
    return isinstance(file, str) and is_user_file(file)


def is_user_class(kind: type) -> bool:
    """Whether `kind` is a class that the user wrote."""
    module = kind.__module__  # some classes have something else than a name there
    return isinstance(module, str) and is_user_module(sys.modules.get(module))


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


def find_running(frame: FrameType | None, *, makes: object | None = None) -> tuple[str, int] | None:
    """Returns file and line of the user's code that `frame` runs for, the innermost first.

    Args:
        frame: Where to begin.
        makes: An object that is being made: its own `__init__` is not where it was asked for.
    """
    while frame is not None:
        file = frame.f_code.co_filename
        if is_user_file(file) and not (makes is not None and _is_init_of(frame, makes)):
            return file, frame.f_lineno
        frame = frame.f_back
    return None


def is_importing(frame: FrameType | None) -> bool:
    """Whether the user's code that `frame` runs for is waiting for an import."""
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def is_called_from(frame: FrameType | None, code: CodeType) -> bool:
    """Whether `code`, a library's own, runs between `frame` and the user's code."""
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        if frame.f_code is code:
            return True
        frame = frame.f_back
    return False


def is_run_by(frame: FrameType | None, package: str) -> bool:
    """Whether `package` has called what `frame` runs, directly or not."""
    while frame is not None and package in sys.modules:
        if str(frame.f_globals.get("__name__")).split(".")[0] == package:
            return True
        frame = frame.f_back
    return False


def _is_init_of(frame: FrameType, thing: object) -> bool:
    code = frame.f_code
    is_init = code.co_name == "__init__" and code.co_argcount > 0
    return is_init and frame.f_locals.get(code.co_varnames[0]) is thing


def find_caller(frame: FrameType | None) -> FrameType | None:
    """Returns the innermost frame from `frame` on that is not memfit's own."""
    while frame is not None and is_own_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


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


def tell_place(file: str, line: int) -> Place:
    """Returns the statement around a line, as a user in the working folder would name it."""
    found = statement_at(file, line)
    return Place(as_typed(file), found.line if found else line, found.text if found else None)


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


def user_files() -> list[str]:
    """Returns the files of the user's modules that are loaded."""
    modules = list(sys.modules.values())
    return [str(one.__dict__["__file__"]) for one in modules if is_user_module(one)]


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


@functools.cache
def _own_folder() -> str:
    return f"{Path(__file__).parents[1]}{os.sep}"


@functools.cache
def _library_folders() -> tuple[str, ...]:
    """Where Python, its packages and memfit are, with links followed and as they stand.

    Not the prefix itself: a project may lie in it.
    """
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = [
        _own_folder().rstrip(os.sep),
        *(sysconfig.get_path(name) for name in names),
        *site.getsitepackages(),
        site.getusersitepackages(),
    ]
    both = {folder for one in folders for folder in (one, str(Path(one).resolve()))}
    return tuple(f"{folder}{os.sep}" for folder in both)
