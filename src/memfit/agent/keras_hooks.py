"""Hooks into Keras and the backends once they are loaded, so that no script must change."""

import functools
import gc
import inspect
import sys
from collections.abc import Callable
from typing import Any

from memfit.agent import gc_pause, process_recorder
from memfit.agent.pipeline_buffers import note_enqueuer
from memfit.backends import BACKEND_NAMES, active_backend_name, load
from memfit.backends.events.wrapping import tell_after
from memfit.failsafe import harmless
from memfit.heap.describe import things_in
from memfit.keras_private.data import enqueuer_class
from memfit.keras_private.trainer import trainer_class
from memfit.user_code.frames import is_called_from

_WITH_CALLBACKS = ("fit", "evaluate", "predict")
# Classes that are watched once their module is loaded: module, class, method, kind of thing.
_FIGURES = ("matplotlib.figure", "Figure", "__init__", "figure")


def install(module_name: str) -> None:
    """Hooks into `module_name`, which has just been loaded."""
    if module_name in BACKEND_NAMES or module_name == "keras":
        if process_recorder.is_script():
            _record_from_now_on()
        _hook_python()
    if module_name == "keras":
        _hook_keras(sys.modules["keras"])
        _watch_keras(sys.modules["keras"])
    elif module_name in BACKEND_NAMES:
        _hook_backend(module_name)
    else:
        _hook_maker(*_FIGURES)


@harmless
def _record_from_now_on() -> None:
    recorder = process_recorder.get_recorder()
    if recorder is not None:
        recorder.note_software()


@harmless
def _hook_backend(name: str) -> None:
    load("events", name).watch(process_recorder.observer)


@harmless
def _hook_maker(module_name: str, class_name: str, method: str, kind: str) -> None:
    if module_name not in sys.modules:
        return
    owner = getattr(sys.modules[module_name], class_name)
    tell_after(owner, method, functools.partial(process_recorder.observed.made, kind))


@functools.cache
@harmless
def _hook_python() -> None:
    """Threads, processes and the collector: what the script does with Python itself."""
    _hook_maker("threading", "Thread", "start", "thread")
    _hook_maker("multiprocessing.process", "BaseProcess", "start", "process")
    _hook_maker(*_FIGURES)
    gc_pause.watch()
    gc.collect = _noting_caller("gc.collect", gc.collect)


@harmless
def _hook_keras(keras: Any) -> None:
    for name in _WITH_CALLBACKS:
        _replace(keras.Model, name, _with_monitor)
    _replace(keras.Model, "train_on_batch", _counting(_count_batch))
    for name in ("test_on_batch", "predict_on_batch"):
        _replace(keras.Model, name, _counting(process_recorder.count_call))
    _replace(keras.optimizers.Optimizer, "apply", _counting(process_recorder.count_update))


@harmless
def _watch_keras(keras: Any) -> None:
    """What the script makes of Keras's classes, and the session that it clears."""
    observed = process_recorder.observed
    tell_after(trainer_class(), "__init__", functools.partial(_note_model, keras.Sequential))
    for owner, method, kind in (
        (_owner(keras.Model, "compile"), "compile", "compilation"),
        (_owner(keras.optimizers.Optimizer, "__init__"), "__init__", "optimizer"),
        (_owner(keras.utils.PyDataset, "__init__"), "__init__", "dataset"),
    ):
        tell_after(owner, method, functools.partial(observed.made, kind))
    clear = keras.utils.clear_session
    for place in (keras.utils, keras.backend):
        place.clear_session = _noting_caller("clear_session", clear)
    tell_after(enqueuer_class(), "__init__", note_enqueuer)


def _note_model(sequential: Any, model: Any) -> None:
    """Counts a model, unless a `Sequential` makes it for itself, as it does at each `add`."""
    build = inspect.unwrap(sequential.build).__code__
    if isinstance(model, sequential) or not is_called_from(sys._getframe(), build):
        process_recorder.observed.made("model", model)


def _replace(public_class: type, name: str, make: Callable[[Any], Any]) -> None:
    """Replaces a method in the class that defines it, so that every subclass has it."""
    owner = _owner(public_class, name)
    setattr(owner, name, make(vars(owner)[name]))


def _owner(public_class: type, name: str) -> type:
    """The class that defines a method."""
    return next(base for base in public_class.__mro__ if name in vars(base))


def _counting(count: Callable[[], None]) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            count()
            return original(*args, **kwargs)

        return call

    return make


def _noting_caller(name: str, original: Any) -> Any:
    """Returns a function whose calls are counted where the user's own code makes them."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        process_recorder.observed.called(name, sys._getframe(1))
        return original(*args, **kwargs)

    return call


@harmless
def _count_batch() -> None:
    process_recorder.counters.steps_before += 1
    recorder = process_recorder.get_recorder()
    if recorder is not None:
        recorder.touch("train_on_batch")


def _with_monitor(original: Any) -> Any:
    """Returns `fit`, `evaluate` or `predict` with a `MemoryMonitor` among its callbacks."""
    position = list(inspect.signature(original).parameters).index("callbacks") - 1
    phase = original.__name__

    def train(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        budget = process_recorder.get_budget() if phase == "fit" else None
        if budget is None:
            return original(model, *args, **kwargs)
        from memfit.fitting.fit import fit_unchanged

        return fit_unchanged(
            original, model, args, kwargs, budget, process_recorder.note_uncontrolled
        )

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if phase == "fit":
            _note_data(args, kwargs)
        added = _add_monitor(args, kwargs, position)
        if added is None:
            return train(self, args, kwargs)
        args, kwargs = added
        try:
            return train(self, args, kwargs)
        except BaseException:
            _end(phase)  # Keras calls no `on_train_end` after an error
            raise

    return call


@harmless
def _note_data(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Notes arrays that are passed to `fit`: Keras copies them for some backends."""
    given = [*args[:2], kwargs.get("x"), kwargs.get("y")]
    size_bytes = sum(
        thing.size_bytes for one in given for thing in things_in(one) if thing.kind == "array"
    )
    name = active_backend_name()
    copies = name is not None and load("devices", name).FIT_COPIES > 0
    process_recorder.observed.loaded("fit", size_bytes, size_bytes if copies else 0)


@harmless
def _end(phase: str) -> None:
    recorder = process_recorder.get_recorder()
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

    from memfit.agent.monitor import MemoryMonitor

    if process_recorder.get_recorder() is None:
        return None
    given = args[position] if len(args) > position else kwargs.get("callbacks")
    if isinstance(given, CallbackList):  # `fit` evaluates with its own list, monitor included
        if not any(isinstance(one, MemoryMonitor) for one in given.callbacks):
            given.append(MemoryMonitor())
        return None
    callbacks = tree.flatten(given) if given else []
    if any(isinstance(one, MemoryMonitor) for one in callbacks):
        return None
    monitor = MemoryMonitor(logs=process_recorder.adds_logs() and not _continues_csv(callbacks))
    together = [monitor, *callbacks]
    if len(args) > position:
        return (*args[:position], together, *args[position + 1 :]), kwargs
    return args, {**kwargs, "callbacks": together}


def _continues_csv(callbacks: list[Any]) -> bool:
    """Whether a CSV file of an earlier run is continued: new columns would not fit its header."""
    from keras.callbacks import CSVLogger

    return any(isinstance(one, CSVLogger) and one.append for one in callbacks)
