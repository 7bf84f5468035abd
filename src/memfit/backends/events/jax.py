"""JAX: steps through calls of jitted functions, compilations through its monitoring."""

import functools
import sys
import threading
from collections.abc import Callable
from types import MethodType
from typing import Any

from memfit.backends.events import Compilation, DataStage, Observer
from memfit.backends.events.wrapping import describe_arguments, written_at
from memfit.failsafe import harmless

_COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"


def watch(observer: Observer) -> None:
    """Tells of calls of functions that are jitted from now on, and of every compilation.

    JAX runs a jitted function in C++ with no hook, so `jax.jit` is replaced by one that
    returns the same function in a thin wrapper.
    """
    jax: Any = sys.modules["jax"]
    original = jax.jit

    @functools.wraps(original)
    def jit(*args: Any, **kwargs: Any) -> Any:
        compiled = original(*args, **kwargs)
        if type(compiled).__name__ == "PjitFunction":
            return CountedFunction(compiled, observer)
        if callable(compiled):  # jax.jit(static_argnums=...) gives a decorator

            def decorate(function: Any) -> Any:
                return CountedFunction(compiled(function), observer)

            return decorate
        return compiled

    jax.jit = jit

    @harmless
    def on_event(event: str, _seconds: float, **details: Any) -> None:
        if event == _COMPILE_EVENT:
            observer.compiled(_compilation(str(details.get("fun_name", ""))))

    jax.monitoring.register_event_duration_secs_listener(on_event)


def is_tracing() -> bool:
    """Returns `False`: memfit does not look for traces by JAX."""
    return False


def after_compiling(act: Callable[[], object]) -> Callable[[], None]:
    """Has `act` called when XLA has compiled something, until the result is called."""
    _listen()
    _after_compiling.append(act)
    return lambda: _after_compiling.remove(act)


_after_compiling: list[Callable[[], object]] = []


@functools.cache
def _listen() -> None:
    @harmless
    def on_event(event: str, _seconds: float, **_details: Any) -> None:
        if event == _COMPILE_EVENT:
            for act in _after_compiling:
                act()

    sys.modules["jax"].monitoring.register_event_duration_secs_listener(on_event)


def watch_scalars(tell: Callable[[float], None]) -> Callable[[], None]:
    """Does nothing: numbers are not kept."""
    return lambda: None


def read_stages() -> list[DataStage]:
    """Returns nothing: JAX has no data pipelines of its own."""
    return []


def _compilation(reported_name: str) -> Compilation:
    name = reported_name.removeprefix("jit(").removesuffix(")")
    call = getattr(_calls, "current", None)
    if call is None or getattr(call[0], "__name__", "") != name:
        return Compilation("jax.jit", name)
    function, args, kwargs = call
    written = written_at(function.__wrapped__)
    arguments = describe_arguments(function.__wrapped__, args, kwargs)
    return Compilation("jax.jit", *written, id(function), arguments)


# The call of a jitted function that each thread is in: a compilation happens during it.
_calls = threading.local()


class CountedFunction:
    """A jitted function that tells of its calls and is otherwise the function itself.

    Args:
        compiled: What `jax.jit` returned.
        observer: Is called for this function and for each of its calls.
    """

    def __init__(self, compiled: Any, observer: Observer) -> None:
        self._compiled = compiled
        self._observer = observer
        observer.made("function", self)
        self.__wrapped__ = compiled.__wrapped__
        self.__name__ = getattr(compiled, "__name__", "<jitted>")
        self.__qualname__ = getattr(compiled, "__qualname__", self.__name__)
        self.__doc__ = compiled.__doc__
        self.__module__ = getattr(compiled, "__module__", __name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function."""
        self._observer.stepped()
        outer = getattr(_calls, "current", None)
        _calls.current = (self, args, kwargs)
        try:
            return self._compiled(*args, **kwargs)
        finally:
            _calls.current = outer

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Binds to an instance, so that a jitted method stays a method."""
        if instance is None:
            return self
        return MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name == "_compiled":  # not there yet while unpickling or copying
            raise AttributeError(name)
        return getattr(self._compiled, name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copies and pickles as the function itself."""
        return self._compiled.__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return repr(self._compiled)
