"""What an object in a container is, and how much memory it keeps."""

import itertools
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any

from memfit.backends import load
from memfit.backends.objects import VIEW_FACTOR, LiveObject, backend_of, kind_by_class, package_of
from memfit.heap.holders import attributes_of
from memfit.keras_private.layers import stored_value
from memfit.user_code.frame_locals import read_locals

_KINDS = {
    "History": "history",
    "Model": "model",
    "BaseOptimizer": "optimizer",
    "Metric": "metric",
    "Layer": "layer",
    "Callback": "callback",
    "Figure": "figure",
    "Thread": "thread",
    "Executor": "thread",
    "IOBase": "file",
    "_IOBase": "file",
    "HLObject": "file",
    "ZipFile": "file",
    "TarFile": "file",
    "BaseProcess": "process",
    "Popen": "process",
}
_MOST_INSIDE = 64
_DEEPEST = 4


def describe(value: object) -> LiveObject | None:
    """Returns what `value` is; `None` for things too small or unknown to matter."""
    kind = type(value)
    package = package_of(kind)
    if package == "numpy":
        return _describe_array(value)
    if package == "pandas":
        return _describe_frame(value)
    backend = backend_of(kind)
    if backend is not None:
        return _ask_backend(backend, value)
    if package == "keras" and any(base.__name__ == "Variable" for base in kind.__mro__):
        return describe(stored_value(attributes_of(value)))
    if issubclass(kind, bytes | bytearray | str):
        return LiveObject("text", sys.getsizeof(value), id(value), kind.__name__)
    name = kind_by_class(_KINDS, value)
    return LiveObject(name, 0, id(value), kind.__name__) if name else None


def is_keras_state(kind: type) -> bool:
    """Whether `kind` is a Keras layer or metric of the user's own, and no whole model."""
    names = {base.__name__ for base in kind.__mro__}
    return bool(names & {"Layer", "Metric"}) and "Model" not in names


def graph_length(value: Any) -> int:
    """Returns how many steps of computation a tensor keeps the record of."""
    name = backend_of(type(value))
    return load("objects", name).graph_length(value) if name is not None else 0


def graph_size_bytes(values: Sequence[Any]) -> int:
    """Returns the bytes that the records of tensors keep, together, apart from parameters."""
    by_backend: dict[str, list[Any]] = {}
    for value in values:
        name = backend_of(type(value))
        if name is not None:
            by_backend.setdefault(name, []).append(value)
    return sum(load("objects", name).graph_size_bytes(some) for name, some in by_backend.items())


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
    """One strange object (a tracer, a fake tensor) must not end the walk over all the others."""
    try:
        return load("objects", name).describe(value)
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
    if issubclass(kind, BaseException):
        return [*_locals_of(value.__traceback__), *attributes_of(value).values()][:_MOST_INSIDE]
    return list(attributes_of(value).values())[:_MOST_INSIDE]


def _locals_of(traceback: TracebackType | None) -> list[Any]:
    """What the functions that an error went through had in their hands: it keeps all of it."""
    values: list[Any] = []
    while traceback is not None:
        values += read_locals(traceback.tb_frame).values()
        traceback = traceback.tb_next
    return values


def _describe_frame(value: Any) -> LiveObject | None:
    """A pandas object is its blocks; counting strings one by one would take too long."""
    blocks = getattr(attributes_of(value).get("_mgr"), "blocks", None)
    if blocks is None:
        return None
    size_bytes = sum(int(getattr(block.values, "nbytes", 0)) for block in blocks)
    return LiveObject("array", size_bytes, id(value), f"{type(value).__name__} {value.shape}")


def plain_size_bytes(value: Any) -> int:
    """Returns what a plain Python object takes, with what is right inside it."""
    inside = _inside(value) if not isinstance(value, str | bytes) else ()
    return sys.getsizeof(value) + sum(sys.getsizeof(one) for one in inside)


def _describe_array(value: Any) -> LiveObject | None:
    """A view keeps all of the buffer that it shows a part of."""
    if not hasattr(value, "nbytes") or not hasattr(value, "dtype"):
        return None
    if any(one.__name__ == "memmap" for one in type(value).__mro__):
        return LiveObject("memmap", value.nbytes, id(value), f"{value.dtype} {value.shape}")
    base = value
    while isinstance(getattr(base, "base", None), type(value)):
        base = base.base
    shape = getattr(value, "shape", ())
    kind = "view" if base.nbytes >= VIEW_FACTOR * max(value.nbytes, 1) else "array"
    return LiveObject(kind, base.nbytes, id(base), f"{value.dtype} {shape}")
