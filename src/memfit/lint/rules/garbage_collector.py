"""Family MF6: a garbage collector that is turned off, or whose objects are frozen."""

import ast
from collections.abc import Iterator

from memfit.lint.rules.rule import Match, Rule
from memfit.lint.script.script import Script, shown

COLLECTOR_OFF = Rule(
    "MF601",
    "collector-off",
    "uncollected-garbage",
    "With the collector off, models and graphs that refer to themselves are never freed.",
)
COLLECTOR_FROZEN = Rule(
    "MF602",
    "collector-frozen",
    "uncollected-garbage",
    "gc.freeze permanently exempts all existing objects from collection, garbage included.",
)
RULES = (COLLECTOR_OFF, COLLECTOR_FROZEN)

_FRAMEWORKS = {"keras", "tensorflow", "torch", "jax", "memfit"}


def check(script: Script) -> Iterator[Match]:
    """Yields where `script` turns the collector off and never collects."""
    if not script.names.modules & _FRAMEWORKS:
        return
    calls = {call: script.names.called(call) for call in script.tree.calls}
    names = set(calls.values())
    for call, name in calls.items():
        is_off = name == "gc.disable" or (name == "gc.set_threshold" and _is_zero(call))
        if is_off and not names & {"gc.collect", "gc.enable"}:
            yield _off(call)
        if name == "gc.freeze" and "gc.unfreeze" not in names:
            yield from _frozen(script, call)


def _is_zero(call: ast.Call) -> bool:
    first = call.args[0] if call.args else None
    return isinstance(first, ast.Constant) and first.value == 0


def _off(call: ast.Call) -> Match:
    return Match(
        COLLECTOR_OFF,
        call,
        f"{shown(call)} turns the collector off, and nothing collects: models and graphs that "
        "refer to themselves are never freed",
        "delete the line, or call gc.collect() at the end of every epoch",
    )


def _frozen(script: Script, call: ast.Call) -> Iterator[Match]:
    earlier = [
        other
        for other in script.tree.calls
        if script.names.called(other) == "gc.collect"
        and script.tree.begin(other) < script.tree.begin(call)
    ]
    repeat = script.repeats.of(call)
    is_once = repeat is None or script.repeats.is_guarded(call, repeat)
    if earlier and is_once:
        return
    often = f" {repeat.each}" if repeat is not None and not is_once else ""
    yield Match(
        COLLECTOR_FROZEN,
        call,
        f"{shown(call)} exempts all existing objects from collection{often}, garbage included",
        f"{shown(call)} -> gc.collect(); {shown(call)}, once, before training",
    )
