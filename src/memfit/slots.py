"""Reads classes, attributes and containers through the built-in types' own slots.

`len(x)`, `x.name`, `isinstance(x, C)` or `repr(x)` may run code of the user's: a property, an
override, a metaclass, a lazy module that loads itself. What is here runs none: it asks `list`,
`dict`, `type` and `object` themselves what they know of an object that is theirs.
"""

import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from types import (
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

CONTAINERS = (list, dict, set, frozenset, deque, tuple)
# Their own text is short, and written by Python itself.
_PLAIN_KEYS = (int, float, complex, bool, type(None))
_LONGEST_TEXT = 40

_mro_of = type.__dict__["__mro__"].__get__
_namespace_of = type.__dict__["__dict__"].__get__
_module_of = type.__dict__["__module__"].__get__
_name_of = type.__dict__["__name__"].__get__
_dict_values: Any = dict.values
_module_names: Any = vars(ModuleType)["__dict__"].__get__


def class_name(kind: type) -> str:
    """Returns the name of a class."""
    return str(_name_of(kind))


def class_module(kind: type) -> str:
    """Returns the name of the module of a class; empty where it has something else there."""
    try:
        module = _module_of(kind)
    except AttributeError:
        return ""
    return module if type(module) is str else ""


def class_bases(kind: type) -> tuple[type, ...]:
    """Returns a class and all its bases, the nearest first."""
    bases: tuple[type, ...] = _mro_of(kind)
    return bases


def class_namespace(kind: type) -> MappingProxyType[str, Any]:
    """Returns what is defined in a class itself."""
    namespace: MappingProxyType[str, Any] = _namespace_of(kind)
    return namespace


def is_a(value: object, *kinds: type) -> bool:
    """Whether `value` is an instance by its type alone, whatever it says of its class itself."""
    return issubclass(type(value), kinds)


def attributes_of(value: object) -> dict[str, Any]:
    """Returns a copy of what an object keeps in its `__dict__`; nothing where it has none."""
    return _names_in(own_attributes(value))


def own_attributes(value: object) -> dict[str, Any]:
    """Returns the very dict in which an object keeps its attributes; an empty one without one."""
    for base in class_bases(type(value)):
        slot: Any = class_namespace(base).get("__dict__")
        if type(slot) is GetSetDescriptorType or type(slot) is MemberDescriptorType:
            try:
                attributes = slot.__get__(value)
            except (AttributeError, TypeError):
                return {}
            return attributes if is_a(attributes, dict) else {}
    return {}


def module_names(module: object) -> dict[str, Any]:
    """Returns a copy of the names of a module. One that loads itself when asked is not asked."""
    return _names_in(_module_names(module)) if is_a(module, ModuleType) else {}


def module_name(module: object, name: str) -> Any:
    """Returns what a module has by this name, `None` for none; nothing is loaded for it."""
    return dict.get(_module_names(module), name) if is_a(module, ModuleType) else None


def module_file(module: object) -> str:
    """Returns the file of a module; empty where it has none."""
    file = module_name(module, "__file__")
    return file if type(file) is str else ""


def length(value: object) -> int | None:
    """Returns how many items a container has; `None` for what is no built-in container."""
    container = _container_of(value)
    return None if container is None else int(container.__len__(value))


def items(value: object, most: int) -> Iterator[tuple[Any, Any]]:
    """Yields the first keys (or numbers) and items of a built-in container."""
    if is_a(value, dict):
        yield from list(itertools.islice(dict.items(value), most))  # type: ignore[arg-type]
    else:
        yield from enumerate(first_items(value, most))


def first_items(value: object, most: int) -> list[Any]:
    """Returns the first items of a built-in container, of a dict its values."""
    container = _container_of(value)
    if container is None:
        return []
    each = _dict_values if container is dict else container.__iter__
    return list(itertools.islice(each(value), most))


def last_items(value: object, most: int) -> list[Any]:
    """Returns the last items of a built-in container, the newest first; of a set any."""
    container = _container_of(value)
    if container is dict:
        backwards: Iterable[Any] = reversed(_dict_values(value))
    elif container in (list, deque):
        backwards = container.__reversed__(value)
    else:
        return first_items(value, most)
    return list(itertools.islice(backwards, most))


def size_bytes(value: object) -> int:
    """Returns the bytes of an object itself, as the built-in type behind it counts them."""
    for base in class_bases(type(value)):
        count: Any = class_namespace(base).get("__sizeof__")
        if type(count) is MethodDescriptorType or type(count) is WrapperDescriptorType:
            return int(count(value))
    return 0


def key_text(key: object) -> str:
    """Returns a key of a dict, or the number of an item, in a few words."""
    kind = type(key)
    if kind is str or kind is bytes:
        text: Any = key
        short = repr(text[:_LONGEST_TEXT])
        return short if len(text) <= _LONGEST_TEXT else f"{short}…"
    if any(kind is one for one in _PLAIN_KEYS) and size_bytes(key) < _LONGEST_TEXT:
        return repr(key)
    return f"a {class_name(kind)}"


def _names_in(attributes: Any) -> dict[str, Any]:
    if not is_a(attributes, dict):
        return {}
    return {name: value for name, value in dict.copy(attributes).items() if type(name) is str}


def _container_of(value: object) -> Any:
    """The built-in container that a value is."""
    return next((one for one in CONTAINERS if issubclass(type(value), one)), None)
