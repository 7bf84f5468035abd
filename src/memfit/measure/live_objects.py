"""What an object in a container is, and how much memory it keeps."""

import itertools
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from memfit.backends import LiveObject, get_backend, kind_by_class
from memfit.measure.holders import attributes_of

_BACKENDS = {"tensorflow": "tensorflow", "jax": "jax", "jaxlib": "jax", "torch": "torch"}
_KINDS = {
    "History": "history",
    "Model": "model",
    "BaseOptimizer": "optimizer",
    "Metric": "metric",
    "Layer": "layer",
    "Callback": "callback",
    "Figure": "figure",
    "Thread": "thread",
    "IOBase": "file",
    "BaseProcess": "process",
    "Popen": "process",
}
_MOST_INSIDE = 64
_DEEPEST = 4


def describe(value: object) -> LiveObject | None:
    """Returns what `value` is; `None` for things too small or unknown to matter."""
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    if package == "memfit":  # our wrapper around a jitted function
        package = "jax"
    if package == "numpy":
        return _describe_array(value)
    if package in _BACKENDS and _BACKENDS[package] in sys.modules:
        return _ask_backend(_BACKENDS[package], value)
    if issubclass(kind, bytes | bytearray | str):
        return LiveObject("text", sys.getsizeof(value), id(value), kind.__name__)
    name = kind_by_class(_KINDS, value)
    return LiveObject(name, 0, id(value), kind.__name__) if name else None


def things_in(value: Any) -> Iterator[LiveObject]:
    """Yields what `value` is, or what is inside it if it is a container or a plain object."""
    pending: deque[tuple[Any, int]] = deque([(value, 0)])
    seen: set[int] = set()
    while pending:
        one, depth = pending.popleft()
        if id(one) in seen:
            continue
        seen.add(id(one))
        known = describe(one)
        if known is not None:
            yield known
        elif depth < _DEEPEST:
            pending.extend((inner, depth + 1) for inner in _inside(one))


def _ask_backend(name: str, value: Any) -> LiveObject | None:
    """One strange object (a tracer, a fake tensor) must not end the look at all the others."""
    try:
        return get_backend(name).describe(value)
    except (AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError):
        return None


def _inside(value: Any) -> Iterable[Any]:
    kind = type(value)
    if issubclass(kind, dict):
        return list(itertools.islice(value.values(), _MOST_INSIDE))
    if issubclass(kind, list | tuple | set | frozenset | deque):
        return list(itertools.islice(value, _MOST_INSIDE))
    if issubclass(kind, type):
        return ()
    return list(attributes_of(value).values())[:_MOST_INSIDE]


def _describe_array(value: Any) -> LiveObject | None:
    """A view keeps the whole buffer that it looks at."""
    if not hasattr(value, "nbytes") or not hasattr(value, "dtype"):
        return None
    base = value
    while isinstance(getattr(base, "base", None), type(value)):
        base = base.base
    shape = getattr(value, "shape", ())
    return LiveObject("array", base.nbytes, id(base), f"{value.dtype} {shape}")
