"""The content of values, functions and classes as one digest: equal code has an equal one."""

import functools
import hashlib
import numbers
import sys
import types
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from memfit.user_code.frames import is_user_file

_PLAIN = (str, bytes, numbers.Number, type(None), type(...), range, slice)
_OF_EVERY_CLASS = {
    "__dict__", "__weakref__", "__doc__", "__annotations__", "__slots__", "_abc_impl",
    "__abstractmethods__", "__parameters__", "__orig_bases__", "__static_attributes__",
    "__firstlineno__",
}  # fmt: skip
_MOST_BYTES = 2**20


class UnknownContentError(Exception):
    """The content of something cannot be told."""


class CodeContent:
    """Collects what code and values say.

    Args:
        layers: Layers that are told apart by their places.
    """

    def __init__(self, layers: Sequence[Any]) -> None:
        self._hash = hashlib.sha256()
        self._places = {id(one): place for place, one in enumerate(layers)}
        self._seen: dict[int, tuple[int, Any]] = {}

    def digest(self) -> str:
        """Returns the digest of all that was added."""
        return self._hash.hexdigest()

    def add(self, value: Any) -> None:
        """Adds a value.

        Raises:
            UnknownContentError: Its content cannot be told.
        """
        if isinstance(value, _PLAIN):
            self._write(type(value).__name__, repr(value))
        elif id(value) in self._places:
            self._write("layer", self._places[id(value)])
        elif id(value) in self._seen:
            self._write("again", self._seen[id(value)][0])
        else:
            # Kept, so that its id is not given anew.
            self._seen[id(value)] = len(self._seen), value
            self._add_new(value)

    def add_object(self, value: Any) -> None:
        """Adds the class of an object, and those of its attributes that its user may have set."""
        kind = type(value)
        self.add(kind)
        if not is_users(kind):
            attributes = {name: one for name, one in vars(value).items() if _is_of_user(one)}
        elif _is_of_keras(kind):
            attributes = _mentioned(value)
        else:
            attributes = vars(value)
        for name in sorted(attributes):
            self._write("attribute", name)
            self.add(attributes[name])

    def _add_new(self, value: Any) -> None:
        if isinstance(value, Mapping):
            self._add_all(type(value).__name__, [*value.keys(), *value.values()])
        elif isinstance(value, list | tuple):
            self._add_all("list", value)
        elif isinstance(value, Set):
            self._add_all("set", sorted(value, key=repr))
        elif isinstance(value, types.ModuleType):
            self._write("module", value.__name__)
        elif isinstance(value, types.CodeType):
            self._add_all("code", _parts_of_code(value))
        elif isinstance(value, types.FunctionType):
            self._add_function(value)
        elif isinstance(value, type):
            self._add_class(value)
        else:
            self._add_other(value)

    def _add_other(self, value: Any) -> None:
        if isinstance(value, types.MethodType):
            self._add_all("method", [value.__func__, value.__self__])
        elif isinstance(value, functools.partial):
            self._add_all("partial", [value.func, value.args, value.keywords])
        elif isinstance(value, staticmethod | classmethod):
            self._add_all(type(value).__name__, [value.__func__])
        elif isinstance(value, property):
            self._add_all("property", [value.fget, value.fset, value.fdel])
        elif hasattr(value, "__name__") and not is_users(value):
            self._write("function", f"{value.__module__}.{value.__name__}")
        elif _is_array(value):
            self._add_array(value)
        elif _root(type(value)) == "keras":
            self._add_of_keras(value)
        elif is_users(type(value)) and hasattr(value, "__dict__"):
            self.add_object(value)
        else:
            raise UnknownContentError(repr(type(value)))

    def _add_of_keras(self, value: Any) -> None:
        """A loss, a metric, an initializer and the like, with what a user gave to it."""
        if hasattr(value, "path") and hasattr(value, "shape"):
            self._write("variable", (tuple(value.shape), str(value.dtype)))
            return
        self.add_object(value)
        if hasattr(value, "get_config") and type(value).__name__ != "SeedGenerator":
            config = value.get_config()
            self.add({key: one for key, one in config.items() if key != "name"})

    def _add_function(self, function: types.FunctionType) -> None:
        if not is_users(function):
            self._write("function", f"{function.__module__}.{function.__qualname__}")
            return
        cells = [one.cell_contents for one in function.__closure__ or ()]
        defaults = [function.__defaults__, function.__kwdefaults__]
        names = set(_names(function.__code__))
        self._add_all("function", [function.__code__, *defaults, *cells])
        self._add_used(names, function.__globals__)

    def _add_used(self, names: set[str], space: Mapping[str, Any]) -> None:
        """What a code finds by these names, also inside of the user's modules."""
        for name in sorted(names & space.keys()):
            value = space[name]
            self._write("name", name)
            self.add(value)
            if isinstance(value, types.ModuleType) and not _is_library(value.__name__):
                inside = vars(value).items()
                self._add_used(
                    names,
                    {key: one for key, one in inside if not isinstance(one, types.ModuleType)},
                )

    def _add_class(self, kind: type) -> None:
        self._write("class", f"{kind.__module__}.{kind.__qualname__}")
        if not is_users(kind):
            return
        for base in kind.__bases__:
            self.add(base)
        for name, value in vars(kind).items():
            if name not in _OF_EVERY_CLASS:
                self._write("member", name)
                self.add(value)

    def _add_array(self, value: Any) -> None:
        from keras import ops

        array = ops.convert_to_numpy(value)
        if array.nbytes > _MOST_BYTES or array.dtype.kind == "O":
            raise UnknownContentError(repr(type(value)))
        self._write("array", (array.shape, str(array.dtype), array.tobytes()))

    def _add_all(self, kind: str, values: Sequence[Any]) -> None:
        self._write(kind, len(values))
        for one in values:
            self.add(one)

    def _write(self, kind: str, text: Any) -> None:
        self._hash.update(f"{kind}:{text!r};".encode())


def is_users(thing: Any) -> bool:
    """Returns whether a class or function is no library's."""
    return not _is_library(str(getattr(thing, "__module__", "")))


def _is_library(name: str) -> bool:
    """Whether a module does not change while a process runs. A notebook has no file."""
    if name != "__main__" and name.partition(".")[0] in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(name), "__file__", None)
    return isinstance(file, str) and not is_user_file(file)


def _root(thing: Any) -> str:
    return str(getattr(thing, "__module__", "")).partition(".")[0]


def _is_of_user(value: Any) -> bool:
    if isinstance(value, types.FunctionType | type):
        return is_users(value)
    if isinstance(value, types.MethodType):
        return is_users(value.__func__)
    return not _is_array(value) and is_users(type(value))


def _is_of_keras(kind: type) -> bool:
    return any(_root(base) == "keras" for base in kind.__mro__)


def _is_array(value: Any) -> bool:
    import numpy as np
    from keras import ops

    return isinstance(value, np.ndarray | np.generic) or bool(ops.is_tensor(value))


def _mentioned(value: Any) -> dict[str, Any]:
    """The attributes that the code of its own classes speaks of, without those that Keras sets."""
    import keras

    of_keras = {*dir(keras.Model), *vars(keras.Model()), "optimizer", "history", "loss", "compiled"}
    classes = [one for one in type(value).__mro__ if is_users(one)]
    functions = [one for kind in classes for one in vars(kind).values()]
    codes = [one.__code__ for one in functions if isinstance(one, types.FunctionType)]
    names = {name for code in codes for name in _names(code)} - of_keras
    return {name: one for name, one in vars(value).items() if name in names}


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _parts_of_code(code: types.CodeType) -> list[Any]:
    return [code.co_code, code.co_consts, code.co_names, code.co_varnames, code.co_freevars]
