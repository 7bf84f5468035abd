"""Family MF2, state: attributes and caches that grow with every call."""

import ast
from collections.abc import Iterator

from memfit.lint.rules.rule import Match, Rule
from memfit.lint.script.bindings import parameters
from memfit.lint.script.containers import RUN_ONCE
from memfit.lint.script.names import dotted
from memfit.lint.script.script import Script, shown

STATE_GROWS = Rule(
    "MF206",
    "state-grows",
    "stateful-layer",
    "A layer, metric or callback that adds each batch to its own state grows with every step.",
)
MEMO_BY_STEP = Rule(
    "MF207",
    "memo-by-step",
    "held-tensors",
    "An unbounded cache whose key counts epochs or steps keeps every result and never reuses one.",
)
RULES = (STATE_GROWS, MEMO_BY_STEP)

_JOINING = {
    *("tensorflow.concat", "torch.cat", "torch.concat", "torch.vstack", "keras.ops.concatenate"),
    *("jax.numpy.concatenate", "jax.numpy.append", "numpy.concatenate", "numpy.append"),
    *("numpy.vstack", "jax.numpy.vstack", "keras.ops.append", "torch.hstack", "numpy.hstack"),
}
_COUNTERS = {"epoch", "step", "iteration", "global_step", "batch_index", "batch_idx"}


def check(script: Script) -> Iterator[Match]:
    """Yields the attributes and caches of `script` that grow with every call."""
    for call in script.tree.calls:
        if script.names.called(call) in _JOINING:
            yield from _state_grows(script, call)
    for function in script.tree.within(script.tree.module, ast.FunctionDef):
        yield from _memo_by_step(script, function)


def _state_grows(script: Script, call: ast.Call) -> Iterator[Match]:
    """Sees `self.bank = cat([self.bank, x])` and `self.bank.assign(concat([self.bank, x]))`."""
    hook = script.repeats.hook(call)
    key = _target(script, call)
    if hook is None or key is None or key not in _parts(call):
        return
    if _is_shortened(script, call, key):
        return
    yield Match(
        STATE_GROWS,
        call,
        f"{shown(call)} adds more to {key} {hook.each}, and nothing shortens it",
        f"keep the last ones only: {key} = {shown(call)}[-1000:]",
    )


def _is_shortened(script: Script, call: ast.Call, key: str) -> bool:
    """Whether something else writes `key` as training goes on."""
    own = script.tree.statement(call)
    written = [binding.node for binding in script.names.bindings(key, call)]
    written += [
        other
        for other in script.tree.within(script.tree.class_of(call) or own, ast.Call)
        if isinstance(other.func, ast.Attribute)
        and other.func.attr == "assign"
        and dotted(other.func.value) == key
    ]
    functions = [
        script.tree.function(node) for node in written if script.tree.statement(node) is not own
    ]
    return any(getattr(function, "name", None) not in RUN_ONCE for function in functions)


def _target(script: Script, call: ast.Call) -> str | None:
    """Returns the attribute of `self` that `call` is assigned to."""
    parent = script.tree.parent(call)
    key = None
    match parent:
        case ast.Assign(targets=[target]):
            key = dotted(target)
        case ast.Call(func=ast.Attribute(attr="assign", value=target)):
            key = dotted(target)
    return key if key is not None and key.startswith("self.") else None


def _parts(call: ast.Call) -> set[str | None]:
    first = call.args[0] if call.args else call
    parts = first.elts if isinstance(first, ast.List | ast.Tuple) else call.args[:1]
    return {dotted(part) for part in parts}


def _memo_by_step(script: Script, function: ast.FunctionDef) -> Iterator[Match]:
    counters = _COUNTERS & set(parameters(function))
    for decorator in function.decorator_list:
        if counters and _is_unlimited(script, decorator):
            yield Match(
                MEMO_BY_STEP,
                decorator,
                f"the cache of {function.name} keeps every result: its key has {min(counters)}, "
                "which never repeats",
                f"@{shown(decorator)} -> @functools.lru_cache(maxsize=...), or no cache at all",
            )


def _is_unlimited(script: Script, decorator: ast.expr) -> bool:
    match decorator:
        case ast.Call(func=function):
            size = [*decorator.args, *(one.value for one in decorator.keywords)][:1]
            is_none = [isinstance(one, ast.Constant) and one.value is None for one in size]
            return script.names.full_name(function) == "functools.lru_cache" and is_none == [True]
    return script.names.full_name(decorator) == "functools.cache"
