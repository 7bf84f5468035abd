"""Who holds what: every container that can be reached from a name the user wrote.

The walk begins at the user's own names (globals of their modules, locals of running functions,
attributes of their objects, class attributes, closures, caches) and goes down, so whatever it
finds has the shortest name that a user would recognise, and nothing has to be asked of the
garbage collector.
"""

import functools
import gc
import logging
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, FunctionType, GeneratorType, ModuleType
from typing import Any

from memfit.slots import (
    CONTAINERS,
    attributes_of,
    class_module,
    class_name,
    class_namespace,
    is_a,
    items,
    key_text,
    last_items,
    length,
    module_file,
    module_names,
)
from memfit.user_code.frame_locals import read_locals
from memfit.user_code.frames import is_own_file, is_user_class, is_user_file, is_user_module

_DEEPEST = 7
_MOST_VISITED = 30_000
_LONGEST_OPENED = 64
_LEAVES = (str, bytes, bytearray, int, float, complex, bool, type(None), ModuleType, range)


@dataclass(frozen=True, slots=True)
class Owner:
    """A name that the user wrote.

    Attributes:
        text: How a user would say it, such as `"outputs of PredictionLogger"`.
        file: The file it is written in.
        name: What stands in the code: a variable, or an attribute with a leading dot.
        is_item: Whether it is inside something that has a name itself.
        owner_class: The class, if this is an attribute.
        line: The line that adds to it, where that is known already.
    """

    text: str
    file: str
    name: str
    is_item: bool = False
    owner_class: type | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """A container or array, and who holds it."""

    owner: Owner
    value: Any


def find_held(
    most_s: float, *, reads_locals: bool = True, roots: Iterable[Any] = ()
) -> Iterator[Held]:
    """Yields every container, and every named value, that the user's names lead to.

    Args:
        most_s: Time of this thread, not of a busy machine, after which the walk stops, wherever
            it is.
        reads_locals: Whether to look at the locals of running functions.
        roots: Objects of the user's own classes, functions and generators that no name may
            lead to.
    """
    until_s = time.thread_time() + most_s
    pending: deque[tuple[Any, Owner | None, int]] = deque(_global_roots())
    pending.extend(_registry_roots())
    if reads_locals:
        for frame in list(sys._current_frames().values()):
            pending.extend(_local_roots(frame))
    # What a name leads to is found under that name, though it is an object of the user's own too.
    nameless = deque(roots)
    seen: set[int] = set()
    while (pending or nameless) and len(seen) < _MOST_VISITED and time.thread_time() < until_s:
        value, owner, depth = pending.popleft() if pending else (nameless.popleft(), None, 0)
        if id(value) in seen or is_a(value, *_LEAVES):
            continue
        seen.add(id(value))
        if owner is not None:
            yield Held(owner, value)
        if depth < _DEEPEST:
            pending.extend((inner, by, depth + 1) for inner, by in _inside(value, owner))


def _global_roots() -> Iterator[tuple[Any, Owner | None, int]]:
    for module in list(sys.modules.values()):
        if is_user_module(module):
            file = module_file(module)
            place = f"global of {Path(file).name}"
            for name, value in module_names(module).items():
                if not name.startswith("__"):
                    yield value, Owner(f"{name} ({place})", file, name), 0


def _registry_roots() -> Iterator[tuple[Any, Owner | None, int]]:
    """Registries of the standard library in which things of the script stay: log handlers."""
    for reference in list(logging._handlerList):  # type: ignore[attr-defined]  # it has no other
        handler = reference()
        buffer = attributes_of(handler).get("buffer")
        if is_a(buffer, list):
            newest = last_items(buffer, 1)
            record = attributes_of(newest[0]) if newest else {}
            text = f"buffer of a {class_name(type(handler))} in the registry of logging"
            file, line = record.get("pathname", ""), record.get("lineno")
            yield buffer, Owner(text, str(file), "", line=line), 0


def _local_roots(frame: FrameType | None) -> Iterator[tuple[Any, Owner | None, int]]:
    while frame is not None:
        code = frame.f_code
        if not is_own_file(code.co_filename):
            is_mine = is_user_file(code.co_filename)
            for name, value in read_locals(frame).items():
                text = f"local {name} of {code.co_name}()"
                yield value, Owner(text, code.co_filename, name) if is_mine else None, 0
        frame = frame.f_back


def _inside(value: Any, owner: Owner | None) -> Iterator[tuple[Any, Owner | None]]:
    kind = type(value)
    if is_a(value, *CONTAINERS):
        yield from _items(value, owner)
    elif is_a(value, functools._lru_cache_wrapper):
        return
    elif is_a(value, FunctionType):
        yield from _closure(value)
    elif is_a(value, GeneratorType):
        yield from _suspended(value)
    elif is_a(value, type):
        if is_user_class(value):
            yield from _attributes(dict(class_namespace(value)), value, "class ")
    else:
        attributes = attributes_of(value)
        if is_user_class(kind):
            yield from _attributes(attributes, kind, "")
        else:
            for name, inner in attributes.items():
                yield inner, owner and _within(owner, name)


def _within(owner: Owner, name: str) -> Owner:
    """What a library's object keeps for the user: the `queue` inside `waiting`."""
    return Owner(f"{name} inside {owner.text}", owner.file, owner.name, is_item=True)


def _suspended(generator: Any) -> Iterator[tuple[Any, Owner | None]]:
    """The locals of a generator between two of its values."""
    frame = generator.gi_frame
    if frame is not None and not generator.gi_running and is_user_file(frame.f_code.co_filename):
        for name, value in read_locals(frame).items():
            text = f"local {name} of {generator.__name__}()"
            yield value, Owner(text, frame.f_code.co_filename, name)


def _items(value: Any, owner: Owner | None) -> Iterator[tuple[Any, Owner | None]]:
    if (length(value) or 0) > _LONGEST_OPENED:
        return
    for key, inner in items(value, _LONGEST_OPENED):
        label = f"[{key_text(key)}]"
        inner_owner = owner and Owner(
            _with_item(owner.text, label), owner.file, owner.name, is_item=True
        )
        yield inner, inner_owner


def _with_item(text: str, label: str) -> str:
    """`kept (global of a.py)` with `['x']` is `kept['x'] (global of a.py)`."""
    name, space, place = text.partition(" ")
    return f"{name}{label}{space}{place}" if not text.startswith("local ") else f"{text} {label}"


def _attributes(
    attributes: dict[str, Any], kind: type, prefix: str
) -> Iterator[tuple[Any, Owner | None]]:
    file = module_file(sys.modules.get(class_module(kind)))
    for name, inner in attributes.items():
        if not name.startswith("__"):
            text = f"{name} of {prefix}{class_name(kind)}"
            yield inner, Owner(text, file, f".{name}", owner_class=kind)


def _closure(function: FunctionType) -> Iterator[tuple[Any, Owner | None]]:
    code = function.__code__
    if not is_user_file(code.co_filename):
        return
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            inner = cell.cell_contents
        except ValueError:  # not filled yet
            continue
        yield (
            inner,
            Owner(f"{name} in the closure of {function.__name__}()", code.co_filename, name),
        )
    defaults = tuple(function.__defaults__ or ())
    names = code.co_varnames[: code.co_argcount][-len(defaults) :] if defaults else ()
    by_name = {**dict(zip(names, defaults, strict=False)), **(function.__kwdefaults__ or {})}
    for name, value in by_name.items():
        text = f"{name}, a default argument of {function.__name__}()"
        yield value, Owner(text, code.co_filename, name)
    for name, value in attributes_of(function).items():
        if name != "__wrapped__":
            text = f"{name} of function {function.__name__}()"
            yield value, Owner(text, code.co_filename, f".{name}")


def cached_values(wrapper: Any) -> list[Any]:
    """Returns the results that an `lru_cache` keeps, the newest last.

    A cache without a bound is a dict of them. One with a bound shows the collector its keys and
    results in turn, and then the dict that leads to them.
    """
    shown = gc.get_referents(wrapper)
    at = next((number for number, one in enumerate(shown) if type(one) is dict), None)
    if at is None:
        return []
    in_turn = [one for one in shown[:at] if not is_a(one, type)]
    return in_turn[1::2] if in_turn else list(shown[at].values())
