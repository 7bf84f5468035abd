"""Many models in a loop: what is built inside a session is released at its end."""

import functools
import gc
import sys
import threading
import warnings
import weakref
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from memfit.backends import active_backend_name, load, loaded_backend_names
from memfit.backends.events.wrapping import tell_after
from memfit.heap.holders import find_held
from memfit.heap.release import release
from memfit.keras_private.state import read_settings, settings_kept
from memfit.keras_private.trainer import trainer_class
from memfit.slots import attributes_of

_MOST_S = 0.5


class SurvivorWarning(UserWarning):
    """A model that was built inside a session is still held after the next one."""


@dataclass(eq=False, slots=True)
class _Built:
    """What was built inside one session.

    Attributes:
        models: Weak references to its models.
        registered: What the frameworks registered for them, by backend.
    """

    models: list["weakref.ref[Any]"] = field(default_factory=list)
    registered: dict[str, frozenset[str]] = field(default_factory=dict)

    @property
    def alive(self) -> list[Any]:
        """The models that are still alive."""
        return [model for one in self.models if (model := one()) is not None]


def session() -> "Session":
    """Returns a `with` block that releases at its end everything that was built inside.

    Keras's own state, compiled functions, caches and garbage are released; settings such as the
    dtype policy and the seed are put back. A model that is still held then is released at the end
    of a later session, once nothing holds it. A `SurvivorWarning` names what holds a model that
    outlives a second session.

    Example:
    ```python
    for fold in folds:
        with memfit.session():
            model = build()
            scores.append(model.fit(*fold).history["loss"][-1])
    ```
    """
    return Session()


class Session:
    """The block that `session` returns."""

    def __init__(self) -> None:
        self._built = _Built()
        self._before: dict[str, frozenset[str]] = {}
        self._settings: dict[str, Any] = {}

    def __enter__(self) -> "Session":
        _watch_models()
        self._before = _registered()
        self._settings = read_settings()
        with _lock:
            _open.append(self._built)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with _lock:
            _open.remove(self._built)
        self._built.registered = {
            name: now - self._before.get(name, frozenset()) for name, now in _registered().items()
        }
        _clear_keras(self._settings)
        gc.collect()
        _warn_of_survivors()
        _pending.append(self._built)
        for built in list(_pending):
            if not built.alive:
                _pending.remove(built)
                _release(built.registered)
        release()


_lock = threading.Lock()
# Sessions that are open, the innermost last, and those whose models were still held at their end.
_open: list[_Built] = []
_pending: list[_Built] = []


@functools.cache
def _watch_models() -> None:
    tell_after(trainer_class(), "__init__", _note_model)


def _note_model(model: Any) -> None:
    if _open:
        _open[-1].models.append(weakref.ref(model))


def _registered() -> dict[str, frozenset[str]]:
    return {name: load("registries", name).registered() for name in loaded_backend_names()}


def _release(registered: dict[str, frozenset[str]]) -> None:
    for name in loaded_backend_names():
        load("registries", name).release(registered.get(name, frozenset()))


def _clear_keras(settings: dict[str, Any]) -> None:
    """Clears what Keras keeps and puts back what was there before the session.

    Keras's own `clear_session` resets the dtype policy and the seed without a word.
    """
    keras: Any = sys.modules["keras"]
    backend = active_backend_name()
    with settings_kept(settings):
        if backend is None or load("registries", backend).is_compiler_loaded():
            keras.utils.clear_session(free_memory=False)


def _warn_of_survivors() -> None:
    """Warns of models of earlier sessions that are still held."""
    survivors = {id(model): model for built in _pending for model in built.alive}
    for model in list(survivors.values()):
        for part in _parts(model):
            survivors.pop(id(part), None)
    if not survivors:
        return
    holders = {
        held.owner.text
        for held in find_held(_MOST_S)
        if any(one is held.value for one in survivors.values())
    }
    where = ", ".join(sorted(holders)) or "something that no name in the script leads to"
    count = "1 model" if len(survivors) == 1 else f"{len(survivors)} models"
    warnings.warn(
        f"{count} built inside earlier sessions cannot be released: held by {where}. "
        "Keep the scores or the weights instead, or delete the name.",
        SurvivorWarning,
        stacklevel=3,
    )


def _parts(model: Any) -> list[Any]:
    """What a model has inside: a `Sequential` has a `Functional`, on torch in a dict of modules."""
    attributes = list(attributes_of(model).values())
    inside = [one for value in attributes if isinstance(value, dict) for one in value.values()]
    return [*attributes, *inside]
