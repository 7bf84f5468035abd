"""Family MF5: common advice that costs something and frees nothing."""

import ast
from collections.abc import Iterator

from memfit.lint.rules.rule import Match, Rule
from memfit.lint.script.repetition import Repeat
from memfit.lint.script.script import Script, shown
from memfit.lint.script.tree import LOOPS, Function
from memfit.lint.script.vocabulary import TENSORS

CLEAR_EACH_EPOCH = Rule(
    "MF501",
    "clear-session-each-epoch",
    "folklore",
    "clear_session in a running training frees nothing of it, makes epochs slower, and resets the "
    "dtype policy and the seed.",
)
COLLECT_EACH_EPOCH = Rule(
    "MF502",
    "collect-each-epoch",
    "folklore",
    "gc.collect at every epoch or step takes about 0.2 s each time and frees only cycles, which "
    "Python collects by itself.",
)
DELETE_IN_FUNCTION = Rule(
    "MF503",
    "delete-in-function",
    "folklore",
    "del inside a tf.function runs once, while it is traced; it frees nothing when it is called.",
)
RULES = (CLEAR_EACH_EPOCH, COLLECT_EACH_EPOCH, DELETE_IN_FUNCTION)

# Who turns the collector off or tunes it means to call it by hand.
_OWN_SCHEME = {"gc.disable", "gc.freeze", "gc.set_threshold"}


def check(script: Script) -> Iterator[Match]:
    """Yields what `script` does that does not help."""
    calls = script.tree.calls
    has_scheme = any(script.names.called(call) in _OWN_SCHEME for call in calls)
    for call in calls:
        name = script.names.called(call)
        if name == "keras.utils.clear_session":
            yield from _clear_each_epoch(script, call)
        elif name == "gc.collect" and not has_scheme:
            yield from _collect_each_epoch(script, call)
    for compilation in script.compilations.all:
        function = script.names.function(compilation.subject)
        if compilation.compiler == "tf.function" and function is not None:
            yield from _delete_in_function(script, function)


def _in_training(script: Script, node: ast.AST) -> Repeat | None:
    """Returns the hook or the loop of one running training that `node` is in."""
    repeat = script.repeats.hook(node) or script.repeats.loop(node)
    if repeat is None or not isinstance(repeat.node, LOOPS):
        return repeat
    return repeat if script.training.is_epoch_loop(repeat.node) else None


def _clear_each_epoch(script: Script, call: ast.Call) -> Iterator[Match]:
    repeat = _in_training(script, call)
    if repeat is None:
        return
    yield Match(
        CLEAR_EACH_EPOCH,
        call,
        f"{shown(call)} in {repeat.label} frees nothing of the running training; it makes epochs "
        "slower and resets the dtype policy and the seed",
        "delete the line; to release models in a loop, put its body into with memfit.session():",
    )


def _collect_each_epoch(script: Script, call: ast.Call) -> Iterator[Match]:
    repeat = _in_training(script, call)
    if repeat is None:
        return
    yield Match(
        COLLECT_EACH_EPOCH,
        call,
        f"{shown(call)} in {repeat.label} takes about 0.2 s each time and frees only cycles, "
        "which Python collects by itself",
        "delete the line; to see what grows: memfit run",
    )


def _delete_in_function(script: Script, function: Function) -> Iterator[Match]:
    deletions = [
        (statement, target)
        for statement in script.tree.within(function, ast.Delete)
        for target in statement.targets
        if isinstance(target, ast.Name) and _is_of_step(script, target)
    ]
    if not deletions:
        return
    names = ", ".join(target.id for _, target in deletions)
    name = getattr(function, "name", "the function")
    yield Match(
        DELETE_IN_FUNCTION,
        deletions[0][0],
        f"del {names} in {name} runs once, while tf.function traces it; it frees nothing at a step",
        f"delete the line{'s' if len({id(one) for one, _ in deletions}) > 1 else ''}",
    )


def _is_of_step(script: Script, name: ast.Name) -> bool:
    """Whether `name` is a tape, a gradient or a tensor."""
    binding = script.names.lookup(name.id, name)
    kind = script.kinds.of_binding(binding) if binding is not None else None
    return kind in {*TENSORS, "tape", "gradients"}
