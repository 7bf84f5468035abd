"""The `memfit.stream` call for the very files that a script reads whole."""

import ast
from collections.abc import Callable
from dataclasses import dataclass

from memfit.diagnose.lint.constants import argument, text
from memfit.diagnose.lint.script import Script, shown

# What Keras takes where `fit` is not told.
_BATCH_SIZE = "32"

# Returns the call that reads the file which the data of an expression comes from.
FindLoad = Callable[[ast.AST], ast.expr | None]


def write_stream(script: Script, call: ast.Call, find_load: FindLoad) -> str | None:
    """Returns what to do instead of `call`, or `None` where the files cannot be streamed.

    Args:
        script: The script.
        call: `fit`, or what makes a dataset of arrays.
        find_load: Finds where data comes from.
    """
    is_fit = script.kinds.is_fit(call)
    parts = [_find_part(script, one, find_load) for one in _parts_of(call, is_fit=is_fit)]
    paths = [one.path for one in parts if one.path is not None]
    is_all_known = all(one.path is not None or not one.is_loaded for one in parts)
    if not parts or parts[0].path is None or not is_all_known or len({*paths}) < len(paths):
        return None
    # What is computed from rows in memory would still need these.
    given = [one.path or one.name for one in parts]
    kept = [one for one in given if one is not None]
    source = kept[0] if len(kept) == 1 else f"({', '.join(kept)})"
    size = next((ast.unparse(one.value) for one in call.keywords if one.arg == "batch_size"), None)
    lines = f"data = memfit.stream({source}, batch_size={size or _BATCH_SIZE}, shuffle=True)"
    lines += f", then {shown(call.func)}(data, ...)" if is_fit else " in place of the dataset"
    is_changed = any(one.is_changed for one in parts)
    return f"{lines}; what is done to the rows in between goes into map=" if is_changed else lines


@dataclass(frozen=True, slots=True)
class _Part:
    """Features, labels or weights.

    Attributes:
        path: The code of the path of their file, if that can be streamed.
        name: Their name, if they come from no file.
        is_loaded: Whether they come from a file.
        is_changed: Whether something is done to what was loaded.
    """

    path: str | None
    name: str | None
    is_loaded: bool
    is_changed: bool


def _find_part(script: Script, node: ast.expr, find_load: FindLoad) -> _Part:
    load = find_load(node)
    if load is None:
        is_name = isinstance(node, ast.Name)
        return _Part(None, ast.unparse(node) if is_name else None, False, not is_name)
    is_changed = not _is_as_loaded(script, node, load)
    return _Part(_path_of(script, node, load), None, True, is_changed)


def _parts_of(call: ast.Call, *, is_fit: bool) -> list[ast.expr]:
    if is_fit:
        found = [argument(call, at, name) for at, name in enumerate(("x", "y"))]
        return [one for one in found if isinstance(one, ast.expr)]
    match argument(call, 0, "tensors"):
        case ast.Tuple(elts=parts) if 1 <= len(parts) <= 3:
            return parts
        case ast.expr() as data if not isinstance(data, ast.Dict):
            return [data]
    return []


def _path_of(script: Script, node: ast.expr, load: ast.expr) -> str | None:
    is_column = isinstance(node, ast.Subscript)  # of an archive, which may hold anything
    match load:
        case ast.Call(args=[path]) if script.names.called(load) == "numpy.load" and not is_column:
            is_archive = (text(script.names, path) or "").endswith(".npz")
            return None if is_archive else ast.unparse(path)
    return None


def _is_as_loaded(script: Script, node: ast.expr, load: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        binding = script.names.lookup(node.id, node)
        return binding is not None and binding.value is load and not binding.path
    return node is load
