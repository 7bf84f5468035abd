"""Numbers and texts that can be known without running the script."""

import ast
import operator
from collections.abc import Callable

from memfit.lint.script.names import Names

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.LShift: lambda one, other: int(one) << min(int(other), 64),
    ast.Pow: lambda one, other: one ** min(other, 64),
}
_MOST_STEPS = 8


def number(names: Names, node: ast.AST | None, steps: int = _MOST_STEPS) -> float | None:
    """Returns the number that `node` is, or `None` if that cannot be known.

    Names are followed to the last value given to them.
    """
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub()):
            operand = number(names, node.operand, steps)
            return None if operand is None else -operand
        case ast.BinOp():
            return _combined(names, node, steps)
        case ast.Name() if steps:
            binding = names.lookup(node.id, node)
            if binding is not None and binding.how == "assign" and not binding.path:
                return number(names, binding.value, steps - 1)
    return None


def _combined(names: Names, node: ast.BinOp, steps: int) -> float | None:
    combine = _OPERATORS.get(type(node.op))
    one, other = number(names, node.left, steps), number(names, node.right, steps)
    if combine is None or one is None or other is None:
        return None
    try:
        value = combine(one, other)
    except (ArithmeticError, ValueError):
        return None
    return value if isinstance(value, int | float) else None  # (-1) ** 0.5 is neither


def text(names: Names, node: ast.AST | None) -> str | None:
    """Returns the text that `node` is, or `None` if that cannot be known."""
    if isinstance(node, ast.Name):
        binding = names.lookup(node.id, node)
        node = binding.value if binding is not None and not binding.path else None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


def argument(call: ast.Call, index: int, name: str) -> ast.expr | None:
    """Returns what `call` passes as argument number `index`, or by the keyword `name`."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    return call.args[index] if len(call.args) > index else None
