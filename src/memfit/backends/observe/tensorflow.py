"""TensorFlow: devices through `get_memory_info`, steps and traces through `tf.function` calls."""

import functools
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from memfit.backends.observe import (
    Compilation,
    Counted,
    DataStage,
    DeviceMemory,
    LiveObject,
    Observer,
    kind_by_class,
)
from memfit.backends.observe import tf_data as data
from memfit.backends.observe.wrapping import describe_arguments, tell_after, written_at
from memfit.failsafe import harmless

FIT_COPIES = 2
BATCH_COPIES = 3.4
BEND = 1.1  # its pool takes more for tensors of a new size
COPIES_SHUFFLED = False
# A tape is open for one step; one that is open longer records a whole loop.
_LONG_S = 1.5
_tapes: "weakref.WeakKeyDictionary[Any, float]" = weakref.WeakKeyDictionary()
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
    if tf is None or not is_initialized():
        return ()
    readings = (_read_device(tf, device.name) for device in tf.config.list_logical_devices())
    return tuple(reading for reading in readings if reading is not None)


def reset_peaks() -> bool:
    """Sets the peak of each accelerator to what is in use now."""
    for one in read_devices():
        if not one.on_host:
            sys.modules["tensorflow"].config.experimental.reset_memory_stats(one.device)
    return True


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
    elements = value.shape.num_elements()
    if elements is None and kind == "variable":  # one that may change its shape
        elements = int(sys.modules["tensorflow"].size(value))
    size_bytes = (elements or 0) * value.dtype.size
    return LiveObject(kind, size_bytes, id(value), f"{value.dtype.name} {tuple(value.shape)}")


def graph_length(value: Any) -> int:
    """Returns 0: a tensor keeps no record of how it was computed."""
    return 0


def graph_size_bytes(values: Sequence[Any]) -> int:
    """Returns 0, for the same reason."""
    return 0


def watch(observer: Observer) -> None:
    """Tells of calls and traces of every `tf.function`, and of what the script makes."""
    tf = sys.modules["tensorflow"]
    _watch_functions(type(tf.function(lambda: None)), observer)
    tell_after(tf.GradientTape, "_push_tape", lambda tape: _note_tape(tape, observer))
    writer_class = sys.modules["tensorflow.python.ops.summary_ops_v2"]._ResourceSummaryWriter
    tell_after(writer_class, "__init__", lambda writer: observer.made("writer", writer))
    data.watch(observer)
    _watch_seeded(tf, observer)


def _watch_seeded(tf: Any, observer: Observer) -> None:
    """Eager random operations under a global seed: each gets a seed, and so a kernel, of its own.

    TensorFlow keeps the kernels of eager operations for good.
    """
    module: Any = sys.modules["tensorflow.python.framework.random_seed"]
    original = module.get_seed

    @functools.wraps(original)
    def get_and_tell(op_seed: Any) -> Any:
        seeds = original(op_seed)
        if op_seed is None and seeds[0] is not None and tf.executing_eagerly():
            observer.made("seeded operation", seeds)
        return seeds

    module.get_seed = get_and_tell


def is_tracing() -> bool:
    """Returns whether a `tf.function` is being traced in this thread."""
    return not sys.modules["tensorflow"].executing_eagerly()


def is_compiler_loaded() -> bool:
    """Returns `True`: Keras loads nothing to clear its session."""
    return True


def count() -> Counted:
    """Counts what TensorFlow keeps for itself: nothing in the script names these."""
    ops = sys.modules.get("tensorflow.python.framework.ops")
    if ops is None:
        return Counted()
    numbers = {
        "gradient_registry": len(ops.gradient_registry._registry),
        "py_functions": data.count_python_functions(),
        "long_tapes": sum(1 for tape, since_s in list(_tapes.items()) if _is_long(tape, since_s)),
    }
    return Counted(numbers)


def registered() -> frozenset[str]:
    """Returns the custom gradients by name; those of an optimizer hold a whole train graph."""
    ops: Any = sys.modules["tensorflow.python.framework.ops"]
    names = ops.gradient_registry._registry
    return frozenset(name for name in names if name.startswith("CustomGradient-"))


def release(names: frozenset[str]) -> None:
    """Takes `names` out of the gradient registry, which is all that holds their graphs."""
    ops: Any = sys.modules["tensorflow.python.framework.ops"]
    for name in names:
        ops.gradient_registry._registry.pop(name, None)


def after_compiling(act: Callable[[], object]) -> Callable[[], None]:
    """Does nothing: what is left of tracing is little."""
    return lambda: None


def watch_scalars(tell: Callable[[float], None]) -> Callable[[], None]:
    """Tells of Python numbers in eager operations: TensorFlow keeps a tensor of each for good."""
    module: Any = sys.modules["tensorflow.python.framework.constant_op"]
    original = module.convert_to_eager_tensor

    @functools.wraps(original)
    def convert_and_tell(value: Any, *args: Any, **kwargs: Any) -> Any:
        if type(value) is float:
            tell(value)
        return original(value, *args, **kwargs)

    module.convert_to_eager_tensor = convert_and_tell

    def stop() -> None:
        module.convert_to_eager_tensor = original

    return stop


def read_stages() -> list[DataStage]:
    """Returns the stages of running `tf.data` pipelines that keep elements."""
    return data.read_stages()


def _watch_functions(function_class: Any, observer: Observer) -> None:
    original = function_class.__call__

    @functools.wraps(original)
    def call_and_tell(self: Any, *args: Any, **kwargs: Any) -> Any:
        observer.stepped()
        before = _num_traces(self)
        try:
            return original(self, *args, **kwargs)
        finally:
            if _num_traces(self) > before:
                _tell_compilation("tf.function", self, args, kwargs, observer)
            elif getattr(self, "_jit_compile", False):
                _tell_new_shapes(self, args, kwargs, observer)

    function_class.__call__ = call_and_tell
    tell_after(function_class, "__init__", lambda function: observer.made("function", function))


def _num_traces(function: Any) -> int:
    """What `experimental_get_tracing_count` returns, without its price at every call."""
    return len(getattr(function, "_function_cache", ()))


@harmless
def _tell_compilation(
    compiler: str, function: Any, args: Any, kwargs: Any, observer: Observer
) -> None:
    name, file, line = written_at(function.python_function)
    arguments = describe_arguments(function.python_function, args, kwargs)
    observer.compiled(Compilation(compiler, name, file, line, id(function), arguments))


_shapes: "weakref.WeakKeyDictionary[Any, set[Any]]" = weakref.WeakKeyDictionary()


@harmless
def _tell_new_shapes(function: Any, args: Any, kwargs: Any, observer: Observer) -> None:
    """XLA compiles for every shape, also where one trace serves all of them."""
    shapes = tuple(
        tuple(one.shape) for one in (*args, *kwargs.values()) if kind_by_class(_KINDS, one)
    )
    seen = _shapes.setdefault(function, set())
    if shapes not in seen:
        seen.add(shapes)
        if len(seen) > 1:
            _tell_compilation("XLA", function, args, kwargs, observer)


def _note_tape(tape: Any, observer: Observer) -> None:
    """An eager loop opens one at each step; a compiled one only while it is traced."""
    _tapes[tape] = time.monotonic()
    observer.stepped()
    observer.made("tape", tape)


def _is_long(tape: Any, since_s: float) -> bool:
    return bool(tape._recording) and time.monotonic() - since_s > _LONG_S


def is_initialized() -> bool:
    """Whether TensorFlow has started its runtime, and its devices with it."""
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
