"""The first line of a script that calls a framework, for what must be written above it."""

import ast
from collections.abc import Collection, Iterator
from pathlib import Path
from types import FrameType

from memfit.user_code.frames import Statement, statement_at

# Calls that are known to start no device, by how their names end or what they have inside.
_HARMLESS = (".set_random_seed", ".Input", "Input")


def find_first_call(frame: FrameType | None, packages: Collection[str]) -> Statement | None:
    """Returns the first statement above the line that `frame` runs that calls one of `packages`.

    Only at the top level of a script, where lines run in their order; `None` anywhere else.
    """
    if frame is None or frame.f_code.co_name != "<module>":
        return None
    file = frame.f_code.co_filename
    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):  # typed into a prompt or a notebook
        return None
    names = set(_imported_names(tree, packages))
    lines = [call.lineno for call in _calls(tree) if _root(call.func) in names]
    above = [line for line in lines if line < frame.f_lineno]
    return statement_at(file, min(above)) if above else None


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
