"""Family MF2: tensors, outputs, weights and models that a container keeps from step to step."""

import ast
from collections.abc import Iterator

from memfit.lint.rules.rule import Match, Rule
from memfit.lint.script.containers import Addition
from memfit.lint.script.names import dotted
from memfit.lint.script.repetition import Repeat
from memfit.lint.script.scalars import is_one_number
from memfit.lint.script.script import Script, shown
from memfit.lint.script.vocabulary import TENSORS

TENSOR_KEPT = Rule(
    "MF201",
    "tensor-kept",
    "held-tensors",
    "A tensor put into a list at every step stays in memory, with all that it refers to; of a "
    "loss, the number is enough.",
)
GRAPH_KEPT = Rule(
    "MF202",
    "loss-summed",
    "held-graph",
    "A sum of torch losses keeps the graph of every step, and all activations in it.",
)
OUTPUTS_KEPT = Rule(
    "MF203",
    "outputs-kept",
    "held-tensors",
    "Outputs of a model put into a list by a hook stay in memory for every epoch or batch.",
)
WEIGHTS_KEPT = Rule(
    "MF204",
    "weights-kept",
    "held-tensors",
    "A copy of all weights put into a list at every pass stays in memory.",
)
HISTORY_KEPT = Rule(
    "MF205",
    "history-kept",
    "accumulating-models",
    "The History that fit returns refers to its model, so a list of them keeps every model.",
)
RULES = (TENSOR_KEPT, GRAPH_KEPT, OUTPUTS_KEPT, WEIGHTS_KEPT, HISTORY_KEPT)

# A longer statement is not shown twice on one line.
_LONGEST = 60


def check(script: Script) -> Iterator[Match]:
    """Yields what containers of `script` keep from step to step."""
    for keep in script.keeps.all:
        yield from _kept(script, keep)
    for node in script.tree.within(script.tree.module, ast.AugAssign, ast.Assign):
        yield from _graph_kept(script, node)
    for comprehension in script.tree.within(script.tree.module, ast.ListComp, ast.DictComp):
        yield from _histories_listed(script, comprehension)


def _kept(script: Script, keep: Addition) -> Iterator[Match]:
    kinds = {*TENSORS, "outputs", "weights", "history"}
    part = script.kinds.contains(keep.value, kinds)
    if part is None or script.compilations.is_compiled(keep.node):
        return
    kind, repeat = script.kinds.of(part), script.repeats.of(keep.node)
    if repeat is None or not script.keeps.lives_on(keep):
        return
    if kind == "history":
        yield from _history_kept(script, keep, part)
    elif kind == "weights":
        yield from _weights_kept(script, keep, part, repeat)
    elif _in_callback(script, keep.node) and kind in ("outputs", "prediction"):
        yield from _outputs_kept(keep, part, repeat)
    elif kind != "outputs":
        yield from _tensor_kept(script, keep, part, repeat)


def _in_callback(script: Script, node: ast.AST) -> bool:
    hook = script.repeats.hook(node)
    return hook is not None and hook.label.startswith(("on_", "the hook"))


def _tensor_kept(script: Script, keep: Addition, part: ast.expr, repeat: Repeat) -> Iterator[Match]:
    is_hook = script.repeats.hook(keep.node) is not None
    if not is_hook and not script.training.trains(_outermost(script, keep, repeat)):
        return  # what an evaluation gathers is meant to be gathered
    if script.kinds.of(part) == "tensor" and _is_per_epoch(script, keep):
        return  # a number or so an epoch
    if is_hook and not keep.key.startswith("self.") and _is_local(script, keep):
        return
    word = "graph and the tensor" if script.kinds.of(part) == "graph" else "tensor"
    yield Match(
        TENSOR_KEPT,
        keep.node,
        f"{shown(keep.node)} keeps the {word} of every step: {keep.key} grows {repeat.each}",
        _fix_tensor(script, keep, part),
    )


def _is_per_epoch(script: Script, keep: Addition) -> bool:
    """Whether the steps run in a loop inside the one that keeps."""
    loops = script.tree.loops(keep.node)
    inner = script.tree.within(loops[0], ast.For, ast.While) if loops else []
    return any(
        loop is not loops[0]
        and not script.tree.is_within(keep.node, loop)
        and script.training.trains(loop)
        for loop in inner
    )


def _outermost(script: Script, keep: Addition, repeat: Repeat) -> ast.AST:
    loops = script.tree.loops(keep.node)
    return loops[-1] if loops else repeat.node


def _is_local(script: Script, keep: Addition) -> bool:
    return script.names.owner(keep.key, keep.node) is script.tree.function(keep.node)


def _fix_tensor(script: Script, keep: Addition, part: ast.expr) -> str:
    before, inner = ast.unparse(keep.node), ast.unparse(part)
    if not is_one_number(script, part):
        return (
            "keep a summary (a mean, a count) or the last few with collections.deque(maxlen=...), "
            f"or write it to disk; .numpy() is as large: {shown(part)}"
        )
    if len(before) > _LONGEST:
        return f"keep its number: {shown(part)} -> float(...)"
    return f"{before} -> {_replaced(keep.node, part, f'float({inner})')}"


def _replaced(node: ast.AST, part: ast.expr, text: str) -> str:
    """Returns the code of `node` with `part` written as `text`."""
    inner = ast.unparse(part)
    head, _, tail = ast.unparse(node).rpartition(inner)
    return f"{head}{text}{tail}"


def _graph_kept(script: Script, node: ast.AugAssign | ast.Assign) -> Iterator[Match]:
    """Sees `total += loss` and `total = total + loss` of a loss that has its torch graph."""
    match node:
        case ast.AugAssign(op=ast.Add(), target=target, value=value):
            pass
        case ast.Assign(targets=[target], value=ast.BinOp(op=ast.Add(), left=left, right=value)):
            if ast.unparse(left) != ast.unparse(target):
                return
        case _:
            return
    repeat = script.repeats.of(node)
    if repeat is None or script.kinds.of(value) != "graph" or isinstance(value, ast.List):
        return
    if script.kinds.of(target) == "graph" and _is_differentiated(script, target, node):
        return
    before, inner = ast.unparse(node), ast.unparse(value)
    yield Match(
        GRAPH_KEPT,
        node,
        f"{shown(node)} keeps the graph of {shown(value)} {repeat.each}, with its activations",
        f"{before} -> {_replaced(node, value, f'{inner}.item()')}",
    )


def _is_differentiated(script: Script, target: ast.expr, node: ast.AST) -> bool:
    """Whether the sum itself goes backward, so that it is meant to have a graph."""
    key = dotted(target)
    if key is None:
        return False
    receivers = [
        call.func.value
        for call in script.tree.within(script.tree.scope(node), ast.Call)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "backward"
    ]
    return any(
        isinstance(part, ast.Name) and part.id == key
        for receiver in receivers
        for part in ast.walk(receiver)
    )


def _outputs_kept(keep: Addition, part: ast.expr, repeat: Repeat) -> Iterator[Match]:
    yield Match(
        OUTPUTS_KEPT,
        keep.node,
        f"{shown(keep.node)} keeps outputs of the model in {keep.key} {repeat.each}",
        f"keep only the last ones or a summary, or write a file: np.save(..., {shown(part)})",
    )


def _weights_kept(
    script: Script, keep: Addition, part: ast.expr, repeat: Repeat
) -> Iterator[Match]:
    changing = {
        name.id
        for loop in script.tree.loops(keep.node)
        if isinstance(loop, ast.For)
        for name in ast.walk(loop.target)
        if isinstance(name, ast.Name)
    }
    if changing & {name.id for name in ast.walk(part) if isinstance(name, ast.Name)}:
        return  # the weights of many layers or models, once each
    is_hook = script.repeats.hook(keep.node) is not None
    if not is_hook and not script.training.trains(_outermost(script, keep, repeat)):
        return
    yield Match(
        WEIGHTS_KEPT,
        keep.node,
        f"{shown(keep.node)} keeps a copy of all weights {repeat.each}",
        "keep the best only, or write each to a file: model.save_weights(...)",
    )


def _history_kept(script: Script, keep: Addition, part: ast.expr) -> Iterator[Match]:
    if not _is_of_new_model(script, part):
        return
    before = ast.unparse(keep.node)
    after = _replaced(keep.node, part, f"{ast.unparse(part)}.history")
    yield Match(
        HISTORY_KEPT,
        keep.node,
        f"{shown(keep.node)} keeps every model: a History refers to its model",
        f"{before} -> {after}"
        if len(before) <= _LONGEST
        else f"append {shown(part)}.history instead",
    )


def _histories_listed(script: Script, node: ast.ListComp | ast.DictComp) -> Iterator[Match]:
    element = node.elt if isinstance(node, ast.ListComp) else node.value
    if script.kinds.of(element) != "history" or not _is_of_new_model(script, element):
        return
    yield Match(
        HISTORY_KEPT,
        element,
        f"a list of {shown(element)} keeps every model: a History refers to its model",
        f"{shown(element)} -> {shown(element)}.history",
    )


def _is_of_new_model(script: Script, node: ast.expr, steps: int = 5) -> bool:
    """Whether the History of `node` is of a model made in the same pass."""
    match node:
        case ast.Name() if steps:
            binding = script.names.lookup(node.id, node)
            value = binding.value if binding is not None else None
            return value is not None and _is_of_new_model(script, value, steps - 1)
        case ast.Call(func=ast.Attribute(attr="fit" | "fit_generator", value=ast.Name() as model)):
            binding = script.names.lookup(model.id, model)
            loops = script.tree.loops(node)
            return (
                binding is not None
                and binding.how == "assign"
                and (
                    any(script.tree.is_within(binding.node, loop) for loop in loops)
                    or (not loops and script.tree.function(binding.node) is not None)
                )
            )
        case ast.Call(func=ast.Attribute(attr="fit" | "fit_generator", value=ast.Call())):
            return True
        case ast.Call() if function := script.names.function(node.func):
            returned = script.kinds.returned(function)
            return (
                any(_is_of_new_model(script, one, steps - 1) for one in returned)
                if steps
                else False
            )
    return False
