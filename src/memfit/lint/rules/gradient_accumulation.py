"""Family MF4, accumulation: gradients of many small batches added up for one update."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from memfit.lint.rules.rule import Match, Rule
from memfit.lint.script.script import Script, shown
from memfit.lint.script.tree import Loop
from memfit.lint.script.vocabulary import TENSORS

NOT_AVERAGED = Rule(
    "MF403",
    "accumulation-not-averaged",
    None,
    "Gradients that are summed and not divided make the update larger by their number: not the "
    "training of a larger batch.",
)
TAIL_DROPPED = Rule(
    "MF404",
    "accumulation-tail",
    None,
    "The last gradients of an epoch are not applied if its batches are not a multiple of the "
    "accumulation steps.",
)
RULES = (NOT_AVERAGED, TAIL_DROPPED)

_COMPARING = {
    *("tensorflow.equal", "tensorflow.math.equal", "tensorflow.greater_equal"),
    "tensorflow.math.greater_equal",
}


@dataclass(frozen=True, slots=True)
class _Accumulation:
    """Gradients that are added up until an `if` lets an optimizer apply them.

    Attributes:
        gate: The `if`.
        update: The call of the optimizer.
        every: The number of batches.
        root: The loop or the function that all of it is in.
        names: Names that the gradients are added up in.
    """

    gate: ast.If
    update: ast.Call
    every: ast.expr
    root: ast.AST
    names: frozenset[str]


def check(script: Script) -> Iterator[Match]:
    """Yields what is wrong with the gradient accumulation of `script`."""
    for gate in script.tree.within(script.tree.module, ast.If):
        found = _read(script, gate)
        if found is None:
            continue
        if not _is_averaged(script, found):
            yield Match(
                NOT_AVERAGED,
                found.update,
                f"{shown(found.update.func)} gets the sum of the gradients of {shown(found.every)} "
                "batches, not their mean",
                f"divide the loss by {shown(found.every)}, or let Keras add up and average: "
                f"keras.optimizers.Adam(gradient_accumulation_steps={shown(found.every)})",
            )
        loop = _loop(script, gate)
        if loop is not None and not _has_tail(script, found, loop):
            yield Match(
                TAIL_DROPPED,
                gate,
                f"{shown(found.update.func)} runs once in {shown(found.every)} batches of the loop "
                f"of line {loop.lineno}; gradients of batches left at its end are not applied",
                f"apply what is left after the loop: {shown(found.update)}",
            )


def _read(script: Script, gate: ast.If) -> _Accumulation | None:
    every = _every(script, gate.test)
    updates = [
        call
        for statement in gate.body
        for call in script.tree.within(statement, ast.Call)
        if script.training.is_update(call)
    ]
    if every is None or not updates:
        return None
    loops = script.tree.loops(gate)
    root: ast.AST = loops[0] if loops else script.tree.function(gate) or script.tree.module
    outside = [
        call for call in script.tree.within(root, ast.Call) if not script.tree.is_within(call, gate)
    ]
    if any(script.training.is_update(call) or _is_named(call, "zero_grad") for call in outside):
        return None  # each step is applied, or begins again
    names = _names(updates[0])
    is_torch = any(_is_named(call, "backward") and not call.args for call in outside)
    if not is_torch and not _adds_up(script, root, gate, names):
        return None
    if any(_is_named(call, "backward", "gradient") for call in script.tree.within(gate, ast.Call)):
        return None  # the gate computes gradients of its own, as in a GAN
    return _Accumulation(gate, updates[0], every, root, frozenset(names))


def _every(script: Script, test: ast.expr) -> ast.expr | None:
    """Returns the number of batches in a test such as `(step + 1) % n == 0`."""
    for node in ast.walk(test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return node.right
    match test:
        case ast.Compare(ops=[ast.Eq() | ast.GtE()], comparators=[limit]):
            return None if isinstance(limit, ast.Constant) and limit.value == 0 else limit
        case ast.Call(args=[_, limit]) if script.names.called(test) in _COMPARING:
            return limit
    return None


def _is_named(call: ast.Call, *names: str) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in names


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} | {
        ast.unparse(one) for one in ast.walk(node) if isinstance(one, ast.Attribute)
    }


def _adds_up(script: Script, root: ast.AST, gate: ast.If, names: set[str]) -> bool:
    """Whether something outside `gate` adds to what the gate applies."""
    return _has_gradients(script, root) and any(
        _is_sum(node)
        and not script.tree.is_within(node, gate)
        and names & _names_around(script, node, root)
        for node in script.tree.within(root, ast.AugAssign, ast.Call, ast.BinOp)
    )


def _is_sum(node: ast.AST) -> bool:
    match node:
        case ast.AugAssign(op=ast.Add()) | ast.BinOp(op=ast.Add()):
            return True
    return isinstance(node, ast.Call) and _is_named(node, "assign_add")


def _names_around(script: Script, node: ast.AST, root: ast.AST) -> set[str]:
    """Returns the names in `node`, and those that the loops around it run over."""
    found = _names(node)
    for parent, _ in script.tree.ancestors(node):
        if parent is root:
            break
        if isinstance(parent, ast.For):
            found |= _names(parent.iter)
        if isinstance(parent, ast.ListComp):
            found |= {name for one in parent.generators for name in _names(one.iter)}
    return found - {"zip", "range", "len", "enumerate"}


def _has_gradients(script: Script, root: ast.AST) -> bool:
    calls = script.training.calls(root)
    return any(script.kinds.of(call) == "gradients" or _is_named(call, "grad") for call in calls)


def _is_averaged(script: Script, found: _Accumulation) -> bool:
    """Whether anything divides the loss or the gradients, or scales them."""
    text = ast.unparse(script.tree.module)
    if "reduction='sum'" in text or "gradient_accumulation_steps" in text:
        return True
    scalings = script.tree.within(script.tree.module, ast.BinOp, ast.AugAssign)
    return any(_is_scaling(script, node, found) for node in scalings) or any(
        _is_division(script, call, found) for call in script.tree.calls
    )


def _is_scaling(script: Script, node: ast.BinOp | ast.AugAssign, found: _Accumulation) -> bool:
    left = node.left if isinstance(node, ast.BinOp) else node.target
    right = node.right if isinstance(node, ast.BinOp) else node.value
    match node.op:
        case ast.Div() if ast.unparse(found.every) in ast.unparse(right):
            return not _is_for_show(script, node)
        case ast.Div() | ast.Mult():
            return any(_is_gradient(script, part, found) for part in (left, right))
    return False


def _is_gradient(script: Script, node: ast.expr, found: _Accumulation) -> bool:
    kind = script.kinds.of(node)
    if kind in TENSORS or kind == "gradients":
        return True
    is_plain = isinstance(node, ast.Name | ast.Subscript | ast.Attribute)
    return is_plain and bool(_names_around(script, node, found.root) & _sums(script, found))


def _sums(script: Script, found: _Accumulation) -> set[str]:
    """Returns the names of what is applied, without those of the model and the optimizer."""
    own = _names(found.update.func)
    return {
        name for name in found.names - own if name != "zip" and "." not in name and name != "model"
    }


def _is_division(script: Script, call: ast.Call, found: _Accumulation) -> bool:
    name = script.names.called(call) or ""
    if name.endswith((".divide", ".truediv", ".multiply", ".scalar_mul", ".reduce_mean_grads")):
        return True
    return name.endswith("map_structure") and bool(_names(call) & _sums(script, found))


def _is_for_show(script: Script, node: ast.AST) -> bool:
    for parent, _ in script.tree.ancestors(node):
        if isinstance(parent, ast.JoinedStr):
            return True
        if isinstance(parent, ast.Call) and ast.unparse(parent.func) in ("print", "logging.info"):
            return True
    return False


def _loop(script: Script, gate: ast.If) -> Loop | None:
    """Returns the loop over batches that `gate` runs in, also if it is in a function."""
    loops = script.tree.loops(gate)
    function = script.tree.function(gate)
    calls = script.repeats.calls(function) if not loops and function is not None else []
    for call in calls:
        loops = loops or script.tree.loops(call)
    return loops[0] if loops and isinstance(loops[0], ast.For | ast.AsyncFor) else None


def _has_tail(script: Script, found: _Accumulation, loop: Loop) -> bool:
    """Whether what is left is applied: by another update, or by a further condition."""
    if isinstance(found.gate.test, ast.BoolOp) and isinstance(found.gate.test.op, ast.Or):
        return True
    updates = [call for call in script.tree.calls if script.training.is_update(call)]
    others = [call for call in updates if not script.tree.is_within(call, found.gate)]
    receiver = found.update.func.value if isinstance(found.update.func, ast.Attribute) else None
    return any(
        isinstance(call.func, ast.Attribute)
        and receiver is not None
        and ast.unparse(call.func.value) == ast.unparse(receiver)
        for call in others
    ) or (isinstance(loop, ast.For) and _stops_evenly(script, found, loop))


def _stops_evenly(script: Script, found: _Accumulation, loop: ast.For) -> bool:
    """Whether the number of passes is written as a multiple, as in `range(n * every)`."""
    every = ast.unparse(found.every)
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mult)
        and every in (ast.unparse(node.left), ast.unparse(node.right))
        for node in ast.walk(loop.iter)
    )
