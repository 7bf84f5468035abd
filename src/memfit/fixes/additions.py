"""What a statement adds to a container or to a sum: found, and replaced by something smaller."""

import ast
from typing import Protocol

from memfit.fixes.guess_kind import kind_of, last_name

# Calls by which a container grows, and the argument that is added.
_ADDING = {"add": 0, "append": 0, "appendleft": 0, "insert": 1, "put": 0, "setdefault": 1}
# Calls that add the items of their arguments.
_ADDING_MANY = frozenset({"extend", "extendleft", "update"})
_DISPLAYS = (ast.Tuple, ast.List, ast.Set, ast.Dict)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp)


class Replacement(Protocol):
    """Gives what to add in the place of an expression; `None` where that is not known."""

    def __call__(self, node: ast.expr, /, *, is_alone: bool) -> ast.expr | None:
        """Changes `node`, which is all that is added or one thing of several."""


def change_added(module: ast.Module, holder: str, change: Replacement) -> bool:
    """Replaces what a statement adds, in place.

    Args:
        module: The statement.
        holder: Who keeps what is added; it selects one of several additions.
        change: What to add instead.

    Returns:
        Whether something was replaced.
    """
    before = ast.dump(module)
    additions = _additions(module, holder)
    if len(additions) != 1:
        return False
    return _replace(additions[0], change) and ast.dump(module) != before


def _additions(module: ast.Module, holder: str) -> list[ast.AST]:
    containers = {
        one: container for one in ast.walk(module) if (container := _container(one)) is not None
    }
    # In d.setdefault(key, []).append(loss) the first call only fetches the container.
    fetching = {inner for container in containers.values() for inner in ast.walk(container)}
    found = [one for one in containers if one not in fetching]
    named = {word.partition("[")[0].rpartition(".")[2] for word in holder.split()} - {""}
    return [one for one in found if _base_name(containers[one]) in named] or found


def _container(node: ast.AST) -> ast.expr | None:
    """Returns what `node` adds to, if it adds."""
    match node:
        case ast.Call(func=ast.Attribute(value=container, attr=method)):
            return container if method in _ADDING or method in _ADDING_MANY else None
        case ast.AugAssign(op=ast.Add() | ast.Sub(), target=target):
            return target
        case ast.Assign(targets=[target], value=value):
            return target if isinstance(target, ast.Subscript) or _has(value, target) else None
    return None


def _base_name(node: ast.expr) -> str:
    while isinstance(node, ast.Subscript):
        node = node.value
    return last_name(node)


def _has(node: ast.expr, target: ast.expr) -> bool:
    """Whether `target` is a part of `node`."""
    text = ast.unparse(target)
    return any(isinstance(one, ast.expr) and ast.unparse(one) == text for one in ast.walk(node))


def _replace(addition: ast.AST, change: Replacement) -> bool:
    match addition:
        case ast.Call(func=ast.Attribute(attr=method)) if method in _ADDING:
            return _replace_argument(addition, _ADDING[method], change)
        case ast.Call():
            return _replace_items(addition, change)
        case ast.AugAssign():
            changed = _each(addition.value, change)
        case ast.Assign(targets=[target]):
            changed = _in_sum(addition.value, target, change)
        case _:
            return False
    if changed is not None:
        addition.value = changed
    return changed is not None


def _replace_argument(call: ast.Call, position: int, change: Replacement) -> bool:
    if len(call.args) != position + 1 or call.keywords:
        return False
    changed = _each(call.args[position], change)
    if changed is not None:
        call.args[position] = changed
    return changed is not None


def _replace_items(call: ast.Call, change: Replacement) -> bool:
    """Fixes `extend` and `update` where the items are written out."""
    if call.keywords or len(call.args) != 1:
        return False
    if not isinstance(call.args[0], (*_DISPLAYS, *_COMPREHENSIONS)):
        return False
    return _replace_argument(call, 0, change)


def _in_sum(value: ast.expr, target: ast.expr, change: Replacement) -> ast.expr | None:
    """Changes what is added to `target` in `target + a + b`; all, where `target` is not in it."""
    if not _has(value, target):
        return _each(value, change)
    if ast.unparse(value) == ast.unparse(target):
        return value
    match value:
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            left = _in_sum(value.left, target, change)
            right = _in_sum(value.right, target, change)
            if left is None or right is None:
                return None
            return ast.BinOp(left, value.op, right)
        case ast.BinOp(op=ast.Mult() | ast.Div()):  # 0.9 * total: the old sum, scaled
            return value
    return None


def _each(node: ast.expr, change: Replacement, *, is_alone: bool = True) -> ast.expr | None:
    """Changes `node`, or each item of it where the items are written out."""
    match node:
        case ast.Dict(keys=keys, values=values):
            changed = None if None in keys else _all(values, change)
            return None if changed is None else ast.Dict(keys, changed)
        case ast.Tuple(elts=items) | ast.List(elts=items):
            changed = _all(items, change)
            return None if changed is None else type(node)(changed, ast.Load())
        case ast.Set(elts=items):
            changed = _all(items, change)
            return None if changed is None else ast.Set(changed)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            item = _each(node.elt, change)
            return None if item is None else type(node)(item, node.generators)
        case ast.Starred():
            return None
    return change(node, is_alone=is_alone)


def _all(nodes: list[ast.expr], change: Replacement) -> list[ast.expr] | None:
    in_question = [one for one in nodes if kind_of(one) != "plain"]
    changed = [_each(one, change, is_alone=in_question == [one]) for one in nodes]
    known = [one for one in changed if one is not None]
    return known if len(known) == len(nodes) else None
