"""Hooks into Keras and the backends once they are loaded, so that no script must change."""

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from memfit.agent import session
from memfit.agent.guard import harmless
from memfit.backends import get_backend

_WITH_CALLBACKS = ("fit", "evaluate", "predict")


def install(module_name: str) -> None:
    """Hooks into `module_name`, which has just been loaded."""
    if session.is_script():
        _record_from_now_on()
    if module_name == "keras":
        _hook_keras(sys.modules["keras"])
    else:
        _hook_backend(module_name)


@harmless
def _record_from_now_on() -> None:
    recorder = session.get_recorder()
    if recorder is not None:
        recorder.note_software()


@harmless
def _hook_backend(name: str) -> None:
    get_backend(name).count_calls(session.count_call)


@harmless
def _hook_keras(keras: Any) -> None:
    for name in _WITH_CALLBACKS:
        _replace(keras.Model, name, _with_monitor)
    _replace(keras.Model, "train_on_batch", _counting(_count_batch))
    _replace(keras.optimizers.Optimizer, "apply", _counting(session.count_update))


def _replace(public_class: type, name: str, make: Callable[[Any], Any]) -> None:
    """Replaces a method in the class that defines it, so that every subclass has it."""
    owner = next(base for base in public_class.__mro__ if name in vars(base))
    setattr(owner, name, make(vars(owner)[name]))


def _counting(count: Callable[[], None]) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            count()
            return original(*args, **kwargs)

        return call

    return make


@harmless
def _count_batch() -> None:
    session.counters.steps_before += 1
    recorder = session.get_recorder()
    if recorder is not None:
        recorder.touch("train_on_batch")


def _with_monitor(original: Any) -> Any:
    """Returns `fit`, `evaluate` or `predict` with a `MemoryMonitor` among its callbacks."""
    position = list(inspect.signature(original).parameters).index("callbacks") - 1
    phase = original.__name__

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        added = _add_monitor(args, kwargs, position)
        if added is None:
            return original(self, *args, **kwargs)
        args, kwargs = added
        try:
            return original(self, *args, **kwargs)
        except BaseException:
            _end(phase)  # Keras calls no `on_train_end` after an error
            raise

    return call


@harmless
def _end(phase: str) -> None:
    recorder = session.get_recorder()
    if recorder is not None:
        recorder.end(phase)


@harmless
def _add_monitor(
    args: tuple[Any, ...], kwargs: dict[str, Any], position: int
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Returns the arguments with a monitor first, so that later callbacks see its logs.

    `None` means: leave them as they are.
    """
    from keras import tree
    from keras.callbacks import CallbackList

    from memfit.agent.callbacks import MemoryMonitor

    if session.get_recorder() is None:
        return None
    given = args[position] if len(args) > position else kwargs.get("callbacks")
    if isinstance(given, CallbackList):  # `fit` evaluates with its own list, monitor included
        if not any(isinstance(one, MemoryMonitor) for one in given.callbacks):
            given.append(MemoryMonitor())
        return None
    callbacks = tree.flatten(given) if given else []
    if any(isinstance(one, MemoryMonitor) for one in callbacks):
        return None
    monitor = MemoryMonitor(logs=session.adds_logs() and not _continues_csv(callbacks))
    together = [monitor, *callbacks]
    if len(args) > position:
        return (*args[:position], together, *args[position + 1 :]), kwargs
    return args, {**kwargs, "callbacks": together}


def _continues_csv(callbacks: list[Any]) -> bool:
    """Whether a CSV file of an earlier run is continued: new columns would not fit its header."""
    from keras.callbacks import CSVLogger

    return any(isinstance(one, CSVLogger) and one.append for one in callbacks)
