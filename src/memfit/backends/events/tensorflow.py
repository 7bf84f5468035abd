"""TensorFlow: steps and traces through calls of every `tf.function`."""

import functools
import sys
import time
import weakref
from collections.abc import Callable
from typing import Any

from memfit.backends.events import Compilation, DataStage, Observer, tf_data
from memfit.backends.events.wrapping import describe_arguments, tell_after, written_at
from memfit.backends.objects import kind_by_class
from memfit.backends.objects.tensorflow import KINDS
from memfit.failsafe import harmless

# A tape is open for one step; one that is open longer records a whole loop.
_LONG_S = 1.5


_tapes: "weakref.WeakKeyDictionary[Any, float]" = weakref.WeakKeyDictionary()


def watch(observer: Observer) -> None:
    """Tells of calls and traces of every `tf.function`, and of what the script makes."""
    tf = sys.modules["tensorflow"]
    _watch_functions(type(tf.function(lambda: None)), observer)
    tell_after(tf.GradientTape, "_push_tape", lambda tape: _note_tape(tape, observer))
    writer_class = sys.modules["tensorflow.python.ops.summary_ops_v2"]._ResourceSummaryWriter
    tell_after(writer_class, "__init__", lambda writer: observer.made("writer", writer))
    tf_data.watch(observer)
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
    return tf_data.read_stages()


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
        tuple(one.shape) for one in (*args, *kwargs.values()) if kind_by_class(KINDS, one)
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


def count_long_tapes() -> int:
    """Returns how many tapes have been open for longer than a step takes."""
    return sum(1 for tape, since_s in list(_tapes.items()) if _is_long(tape, since_s))


def _is_long(tape: Any, since_s: float) -> bool:
    return bool(tape._recording) and time.monotonic() - since_s > _LONG_S
