"""The only code that knows TensorFlow, JAX or torch: one adapter each, chosen here.

Inside a training an adapter never imports its framework: it is used only once the script has
done so, and nothing it does may initialise a device that the script has not initialised.
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol, cast

BACKEND_NAMES = ("tensorflow", "jax", "torch")


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """What a framework's own allocator says of one device.

    Attributes:
        device: Such as `"GPU:0"` or `"CPU:0"`.
        in_use_bytes: In tensors now.
        peak_bytes: The most that it has been, where known.
        limit_bytes: What the framework may take of the device, where known.
        on_host: Whether this is host memory, which the process's RSS counts too.
    """

    device: str
    in_use_bytes: int
    peak_bytes: int | None = None
    limit_bytes: int | None = None
    on_host: bool = False


@dataclass(frozen=True, slots=True)
class LiveObject:
    """What one object is to a person who looks for memory.

    Attributes:
        kind: Such as `"tensor"`, `"graph"` (with the record of how it was computed),
            `"function"`, `"dataset"`, `"model"`.
        size_bytes: Memory that it keeps; a view counts the whole buffer behind it.
        buffer_id: The same for objects that share one buffer.
        text: Type and shape, such as `"float32 (128, 10)"`.
    """

    kind: str
    size_bytes: int
    buffer_id: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class CompiledFunction:
    """A function that a framework traced or compiled.

    Attributes:
        name: Its name.
        file: Where it is written.
        line: The line there.
        traces: How often it was traced or compiled.
        signatures: What some of these were made for, the newest last.
    """

    name: str
    file: str | None
    line: int | None
    traces: int
    signatures: tuple[str, ...] = ()


class Backend(Protocol):
    """What memfit needs of a framework. Modules of this package have this shape."""

    def read_devices(self) -> tuple[DeviceMemory, ...]:
        """Returns the devices in use; none before the script has used one."""

    def list_devices(self) -> tuple[str, ...]:
        """Returns all devices that it sees. Imports it: only for a process of its own."""

    def describe(self, value: Any) -> LiveObject | None:
        """Returns what `value`, an object of this framework, is; `None` if nothing known."""

    def compiled_functions(self) -> list[CompiledFunction]:
        """Returns the functions that are alive and were made since `count_calls`."""

    def count_calls(self, on_call: Callable[[], None]) -> None:
        """Has `on_call` called at each call of a compiled function or optimizer step."""


def get_backend(name: str) -> Backend:
    """Returns the adapter of the framework `name`; loads the adapter, not the framework."""
    return cast("Backend", importlib.import_module(f"memfit.backends.{name}"))


def written_at(function: Any) -> tuple[str, str | None, int | None]:
    """Returns name, file and line of a Python function, through whatever wraps it."""
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    name = getattr(function, "__name__", type(function).__name__)
    return name, getattr(code, "co_filename", None), getattr(code, "co_firstlineno", None)


def kind_by_class(kinds: Mapping[str, str], value: object) -> str | None:
    """Returns the kind of `value` by the names of its classes, the nearest first."""
    return next(
        (kinds[base.__name__] for base in type(value).__mro__ if base.__name__ in kinds), None
    )


def active_backend_name(modules: Mapping[str, ModuleType] | None = None) -> str | None:
    """Returns the framework that the script uses: Keras's own, else the first one loaded.

    Args:
        modules: Loaded modules by name. Defaults to `sys.modules`.
    """
    modules = sys.modules if modules is None else modules
    config = getattr(modules.get("keras"), "config", None)
    ask = getattr(config, "backend", None)
    if ask is not None:  # it is not there yet while Keras is being imported
        name = ask()
        return name if name in BACKEND_NAMES else None
    return next((name for name in BACKEND_NAMES if name in modules), None)
