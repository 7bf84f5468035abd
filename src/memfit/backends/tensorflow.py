"""TensorFlow: devices through `get_memory_info`, steps through `tf.function` calls."""

import functools
import sys
import weakref
from collections.abc import Callable
from typing import Any

from memfit.backends import (
    CompiledFunction,
    DeviceMemory,
    LiveObject,
    kind_by_class,
    written_at,
)

# Weakly: a function that the script drops must go.
_functions: "weakref.WeakSet[Any]" = weakref.WeakSet()
_KINDS = {
    "EagerTensor": "tensor",
    "BaseResourceVariable": "variable",
    "GradientTape": "tape",
    "Function": "function",
    "ConcreteFunction": "function",
    "DatasetV2": "dataset",
    "OwnedIterator": "iterator",
    "SummaryWriter": "writer",
}


def read_devices() -> tuple[DeviceMemory, ...]:
    """Returns TensorFlow's devices; none before its runtime is up.

    Asking earlier would start the runtime, and then the script's own
    `set_memory_growth` would fail.
    """
    tf = sys.modules.get("tensorflow")
    if tf is None or not _is_initialized():
        return ()
    readings = (_read_device(tf, device.name) for device in tf.config.list_logical_devices())
    return tuple(reading for reading in readings if reading is not None)


def list_devices() -> tuple[str, ...]:
    """Returns the devices that TensorFlow sees. Imports it: for a process of its own."""
    import tensorflow as tf

    return tuple(
        device.name.removeprefix("/physical_device:")
        for device in tf.config.list_physical_devices()
    )


def describe(value: Any) -> LiveObject | None:
    """Returns what an object of TensorFlow is. Reads shapes only: nothing is copied."""
    kind = kind_by_class(_KINDS, value)
    if kind not in ("tensor", "variable"):
        return LiveObject(kind, 0, id(value), type(value).__name__) if kind else None
    size_bytes = (value.shape.num_elements() or 0) * value.dtype.size
    return LiveObject(kind, size_bytes, id(value), f"{value.dtype.name} {tuple(value.shape)}")


def count_calls(on_call: Callable[[], None]) -> None:
    """Counts calls of every `tf.function`, those made earlier included."""
    function_class: Any = type(sys.modules["tensorflow"].function(lambda: None))
    original = function_class.__call__

    @functools.wraps(original)
    def call_and_count(self: Any, *args: Any, **kwargs: Any) -> Any:
        on_call()
        return original(self, *args, **kwargs)

    function_class.__call__ = call_and_count
    _remember_new(function_class)


def compiled_functions() -> list[CompiledFunction]:
    """Returns the `tf.function`s that are alive, with how often each was traced."""
    return [
        CompiledFunction(
            *written_at(function.python_function),
            function.experimental_get_tracing_count(),
            _signatures(function),
        )
        for function in list(_functions)
    ]


def _remember_new(function_class: Any) -> None:
    original = function_class.__init__

    @functools.wraps(original)
    def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        _functions.add(self)

    function_class.__init__ = initialise


def _signatures(function: Any) -> tuple[str, ...]:
    """The arguments of the last two traces, as TensorFlow prints them."""
    try:
        traced = function._list_all_concrete_functions()[-2:]
        return tuple(str(one.structured_input_signature[0])[:200] for one in traced)
    except (AttributeError, RuntimeError, ValueError):
        return ()


def _is_initialized() -> bool:
    context_module = sys.modules.get("tensorflow.python.eager.context")
    context = context_module.context_safe() if context_module is not None else None
    return bool(getattr(context, "_initialized", False))


def _read_device(tf: Any, name: str) -> DeviceMemory | None:
    device = name.removeprefix("/device:")
    try:
        info = tf.config.experimental.get_memory_info(device)
    except (ValueError, tf.errors.OpError):
        return None  # a CPU without oneDNN's allocator keeps no count
    return DeviceMemory(
        device=device,
        in_use_bytes=int(info["current"]),
        peak_bytes=int(info["peak"]),
        on_host=device.startswith("CPU"),
    )
