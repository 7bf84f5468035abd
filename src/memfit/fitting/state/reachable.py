"""What can be reached from a model: objects with attributes, containers, variables, arrays.

Attributes and items are read where objects keep them, so that none of the user's code runs:
no property, no `__getattr__`, no `__iter__`.
"""

import functools
import sys
import types
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memfit.backends import load
from memfit.backends.objects import PACKAGES, package_of
from memfit.slots import class_bases, class_namespace, own_attributes

_CONTAINERS = (OrderedDict, dict, list, tuple, set, frozenset, deque)
# Longer ones are data. They are kept, but nobody keeps variables in them.
_LONGEST_OPENED = 10_000
_LEAVES = frozenset(
    {str, bytes, int, float, complex, bool, type(None), type(...), range, slice, type}
    | {types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.CodeType}
)
# Objects of these are no state of a training, or look after themselves.
_CLOSED = frozenset({*PACKAGES, *sys.stdlib_module_names, "numpy", "pandas", "memfit"})
_OPEN = (types.SimpleNamespace,)


@dataclass(frozen=True, slots=True)
class Kind:
    """How what objects of a class hold is read.

    Attributes:
        container: The built-in class whose items it has; `None` if it has none.
        is_opened: Whether its attributes are state of a training.
        slots: What reads attributes that are not in a dictionary.
    """

    container: Any
    is_opened: bool
    slots: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Thing:
    """Something that was reached."""

    value: Any
    kind: Kind


def walk(root: Any) -> Iterator[Thing]:
    """Gives each thing that can be reached from `root`, once, itself among them."""
    kinds: dict[type, Kind] = {}
    state = load("state")
    pending, seen = [root], {id(root): root}
    while pending:
        value = state.unwrap(pending.pop())
        kind = kinds.get(type(value))
        if kind is None:
            kind = kinds[type(value)] = _find_kind(value)
        yield Thing(value, kind)
        for inner in _inside(value, kind):
            if type(inner) not in _LEAVES and id(inner) not in seen:
                seen[id(inner)] = inner
                pending.append(inner)


def slots_of(value: Any, kind: Kind) -> dict[Any, Any]:
    """Returns what an object keeps outside of a dictionary, by what reads it."""
    found = {}
    for slot in kind.slots:
        try:
            found[slot] = slot.__get__(value)
        except AttributeError:  # nothing is in it
            continue
    return found


def _find_kind(value: Any) -> Kind:
    kind = type(value)
    if issubclass(kind, type):
        return Kind(None, is_opened=False, slots=())
    container = next((one for one in _CONTAINERS if issubclass(kind, one)), None)
    is_opened = package_of(kind) not in _CLOSED or kind in _OPEN or load("state").is_module(value)
    slots = [
        one
        for base in class_bases(kind)
        for one in class_namespace(base).values()
        if is_opened and type(one) is types.MemberDescriptorType
    ]
    return Kind(container, is_opened, tuple(slots))


def _inside(value: Any, kind: Kind) -> Iterator[Any]:
    base = kind.container
    if base is not None:
        if base.__len__(value) <= _LONGEST_OPENED:
            yield from list(base.values(value) if issubclass(base, dict) else base.__iter__(value))
    elif type(value) is types.MethodType:
        yield value.__self__
    elif type(value) is functools.partial:
        yield from (value.func, value.args, value.keywords)
    if kind.is_opened:
        yield from list(own_attributes(value).values())
        if kind.slots:
            yield from slots_of(value, kind).values()
