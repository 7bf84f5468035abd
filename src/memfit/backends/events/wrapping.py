"""Wraps a framework's functions: calls an observer and says what a call was given."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memfit.failsafe import harmless

_MOST_ARGUMENTS = 64
_DEEPEST_ARGUMENT = 4


def written_at(function: Any) -> tuple[str, str | None, int | None]:
    """Returns name, file and line of a Python function, through whatever wraps it."""
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    name = getattr(function, "__name__", type(function).__name__)
    return name, getattr(code, "co_filename", None), getattr(code, "co_firstlineno", None)


def describe_arguments(
    function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, str]:
    """Returns each argument in words: type and shape of arrays, the value of anything else."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    method = getattr(code, "co_name", "")
    if names[:1] == ("self",) and not (args and hasattr(type(args[0]), method)):
        names = names[1:]  # a method that is bound already
    given = [
        (names[at] if at < len(names) else f"argument {at + 1}", one) for at, one in enumerate(args)
    ]
    described: dict[str, str] = {}
    for name, value in [*given, *kwargs.items()]:
        _describe_argument(name, value, described, 0)
    return described


def _describe_argument(name: str, value: Any, into: dict[str, str], depth: int) -> None:
    if len(into) >= _MOST_ARGUMENTS:
        return
    kind = type(value)
    if issubclass(kind, Mapping) and depth < _DEEPEST_ARGUMENT:
        for key, inner in list(value.items()):
            _describe_argument(f"{name}[{key!r}]", inner, into, depth + 1)
    elif issubclass(kind, list | tuple) and depth < _DEEPEST_ARGUMENT:
        for at, inner in enumerate(value):
            _describe_argument(f"{name}[{at}]", inner, into, depth + 1)
    elif hasattr(kind, "shape") and hasattr(kind, "dtype"):
        dtype = getattr(value.dtype, "name", None) or str(value.dtype).removeprefix("torch.")
        into[name] = f"{dtype} {tuple(value.shape)}"
    elif callable(value):
        into[name] = f"{getattr(value, '__name__', kind.__name__)} (object {id(value):#x})"
    elif issubclass(kind, int | float | str | bool | type(None)):
        into[name] = f"{value!r:.60} (Python {kind.__name__})"
    else:
        into[name] = f"{kind.__name__} (object {id(value):#x})"


def tell_after(owner: Any, method: str, tell: Callable[[Any], None]) -> None:
    """Has `tell` called with the object after each call of `method` on it."""
    original = vars(owner)[method]
    tell_safely = harmless(tell)

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        tell_safely(self)
        return result

    setattr(owner, method, call)
