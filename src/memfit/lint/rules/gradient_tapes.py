"""Family MF4, tapes: gradient tapes that record longer than one step."""

import ast
from collections.abc import Iterator

from memfit.lint.rules.rule import Match, Rule
from memfit.lint.script.bindings import Binding
from memfit.lint.script.names import dotted
from memfit.lint.script.script import Script, shown
from memfit.lint.script.tree import Loop

TAPE_AROUND_LOOP = Rule(
    "MF401",
    "tape-around-loop",
    "held-graph",
    "A tape opened outside the loop that uses it records all passes, with their activations.",
)
TAPE_KEPT = Rule(
    "MF402",
    "persistent-tape-kept",
    "held-graph",
    "A persistent tape that is kept holds everything it recorded.",
)
RULES = (TAPE_AROUND_LOOP, TAPE_KEPT)


def check(script: Script) -> Iterator[Match]:
    """Yields the tapes of `script` that record or live too long."""
    for call in script.tree.calls:
        match call.func:
            case ast.Attribute(attr="gradient", value=ast.Name() as tape):
                yield from _tape_around_loop(script, call, tape)
    yield from _tapes_kept(script)


def _tape_around_loop(script: Script, call: ast.Call, tape: ast.Name) -> Iterator[Match]:
    binding = script.names.lookup(tape.id, tape)
    if binding is None or script.kinds.of_binding(binding) != "tape" or not call.args:
        return
    outside = [
        loop
        for loop in script.tree.loops(call)
        if not script.tree.is_within(binding.node, loop) and _is_recorded(script, binding, loop)
    ]
    if not outside or not _is_computed_in(script, call.args[0], outside[0]):
        return
    loop = outside[0]
    opened = binding.node.lineno if isinstance(binding.node, ast.stmt) else _line(binding)
    yield Match(
        TAPE_AROUND_LOOP,
        loop,
        f"{tape.id} (line {opened}) is opened outside the loop of line {loop.lineno} that calls "
        f"{shown(call.func)}, and records every pass of it",
        f"open it inside: with tf.GradientTape() as {tape.id}: as the first line of the loop",
    )


def _line(binding: Binding) -> int:
    return binding.value.lineno if binding.value is not None else 0


def _is_recorded(script: Script, binding: Binding, loop: Loop) -> bool:
    """Whether the tape of `binding` goes on recording from pass to pass of `loop`."""
    if binding.how == "with":
        block = script.tree.parent(binding.node)
        return block is not None and script.tree.is_within(loop, block)
    # A tape that is not persistent begins again after `gradient`; a persistent one goes on.
    return _is_persistent(binding.value) and any(
        dotted(item.context_expr) == binding.key for item in script.tree.within(loop, ast.withitem)
    )


def _is_persistent(value: ast.expr | None) -> bool:
    if not isinstance(value, ast.Call):
        return False
    first = value.args[0] if value.args else None
    given = next((one.value for one in value.keywords if one.arg == "persistent"), first)
    return isinstance(given, ast.Constant) and given.value is True


def _is_computed_in(script: Script, node: ast.expr, loop: Loop) -> bool:
    """Whether what is differentiated is computed in `loop`, not before it."""
    if not isinstance(node, ast.Name):
        return isinstance(node, ast.Call)
    binding = script.names.lookup(node.id, node)
    return (
        binding is not None
        and binding.node is not loop
        and script.tree.is_within(binding.node, loop)
    )


def _tapes_kept(script: Script) -> Iterator[Match]:
    kept: list[tuple[ast.AST, ast.expr, str]] = [
        (keep.node, keep.value, keep.key)
        for keep in script.keeps.all
        if _kept_on(script, keep.node)
    ]
    for node in script.tree.within(script.tree.module, ast.Assign):
        match node.targets:
            case [ast.Attribute(value=ast.Name(id="self")) as target]:
                kept.append((node, node.value, ast.unparse(target)))
    for place, value, key in kept:
        if isinstance(value, ast.Name) and _names_persistent_tape(script, value):
            yield Match(
                TAPE_KEPT,
                place,
                f"{shown(place)} keeps a persistent tape in {key}, with everything it recorded",
                f"keep what {value.id}.gradient(...) gives, and drop {value.id}",
            )


def _kept_on(script: Script, node: ast.AST) -> bool:
    return script.repeats.of(node) is not None or not script.tree.loops(node)


def _names_persistent_tape(script: Script, name: ast.Name) -> bool:
    binding = script.names.lookup(name.id, name)
    if binding is None or script.kinds.of_binding(binding) != "tape":
        return False
    return _is_persistent(binding.value)
