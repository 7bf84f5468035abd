"""What an object in a container is, and how much memory it keeps."""

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any

from memfit.backends import load
from memfit.backends.objects import VIEW_FACTOR, LiveObject, backend_of, kind_by_class, package_of
from memfit.keras_private.layers import stored_value
from memfit.slots import (
    CONTAINERS,
    attributes_of,
    class_bases,
    class_name,
    first_items,
    is_a,
    module_name,
    size_bytes,
)
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
# What an error says of itself, as the built-in type knows it.
_traceback_of = BaseException.__dict__["__traceback__"].__get__


def describe(value: object) -> LiveObject | None:
    """Returns what `value` is; `None` for things too small or unknown to matter."""
    kind = type(value)
    package = package_of(kind)
    array = _array_class(value)
    if array is not None:
        return _describe_array(array, value)
    if package == "pandas":
        return _describe_frame(value)
    backend = backend_of(kind)
    if backend is not None:
        return _ask_backend(backend, value)
    if package == "keras" and "Variable" in map(class_name, class_bases(kind)):
        return describe(stored_value(attributes_of(value)))
    if is_a(value, bytes, bytearray, str):
        return LiveObject("text", size_bytes(value), id(value), class_name(kind))
    name = kind_by_class(_KINDS, value)
    return LiveObject(name, 0, id(value), class_name(kind)) if name else None


def is_keras_state(kind: type) -> bool:
    """Whether `kind` is a Keras layer or metric of the user's own, and no whole model."""
    names = set(map(class_name, class_bases(kind)))
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
    if is_a(value, *CONTAINERS):
        return first_items(value, _MOST_INSIDE)
    if is_a(value, type):
        return ()
    if is_a(value, BaseException):
        traceback = _traceback_of(value)
        return [*_locals_of(traceback), *attributes_of(value).values()][:_MOST_INSIDE]
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
    total_bytes = sum(map(_block_bytes, (block.values for block in blocks)))
    return LiveObject("array", total_bytes, id(value), f"{class_name(type(value))} {value.shape}")


def _block_bytes(values: Any) -> int:
    array = _array_class(values)
    if array is None and package_of(type(values)) != "pandas":  # an extension of the user's own
        return 0
    return int(values.nbytes if array is None else array.nbytes.__get__(values))


def plain_size_bytes(value: Any) -> int:
    """Returns what a plain Python object takes, with what is right inside it."""
    inside = _inside(value) if not is_a(value, str, bytes) else ()
    return size_bytes(value) + sum(map(size_bytes, inside))


def _array_class(value: Any) -> Any:
    """NumPy's own class of an array or a number, whatever the user made of it."""
    numpy = sys.modules.get("numpy")
    classes = [module_name(numpy, name) for name in ("ndarray", "generic")]
    return next((one for one in classes if one is not None and is_a(value, one)), None)


def _describe_array(array: Any, value: Any) -> LiveObject:
    """A view keeps all of the buffer that it shows a part of."""
    own_bytes = array.nbytes.__get__(value)
    text = f"{array.dtype.__get__(value)} {array.shape.__get__(value)}"
    if "memmap" in map(class_name, class_bases(type(value))):
        return LiveObject("memmap", own_bytes, id(value), text)
    base, base_bytes = value, own_bytes
    while _array_class(inner := array.base.__get__(base)) is array:
        base, base_bytes = inner, array.nbytes.__get__(inner)
    kind = "view" if base_bytes >= VIEW_FACTOR * max(own_bytes, 1) else "array"
    return LiveObject(kind, base_bytes, id(base), text)
