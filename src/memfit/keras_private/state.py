"""Keras's global state of a thread: the call, the scopes, seeds, names of layers, settings."""

import contextlib
import copy
import random
from collections.abc import Iterator, Mapping
from typing import Any

from memfit.keras_private.names import relies_on

_CALL = "current_call_ctx"


@relies_on("keras.src.backend.common.global_state.GLOBAL_STATE_TRACKER")
def _state() -> Any:
    """Returns the object whose attributes are the state: a `threading.local`."""
    from keras.src.backend.common import global_state

    return global_state.GLOBAL_STATE_TRACKER


def read_surroundings() -> dict[str, Any]:
    """Returns what Keras knows of a running call: whether it trains, the precision, scopes."""
    now = dict(vars(_state()))
    call = now.get(_CALL)
    if call is not None:
        now[_CALL] = copy.copy(call)
    return now


@contextlib.contextmanager
def surrounded(surroundings: Mapping[str, Any]) -> Iterator[None]:
    """Lets Keras think that it is still inside the call, on a GPU also in another thread."""
    now = vars(_state())
    before = {name: now[name] for name in surroundings if name in now}
    now.update(surroundings)
    if _CALL in now:  # layers write to it
        now[_CALL] = copy.copy(now[_CALL])
    try:
        yield
    finally:
        for name in surroundings:
            now.pop(name, None)
        now.update(before)


@relies_on("keras.src.backend.common.stateless_scope.get_stateless_scope")
def outer_stateless_scope() -> Any | None:
    """Returns the `StatelessScope` that is open, if one is."""
    return getattr(_state(), "stateless_scope", None)


@relies_on(
    "keras.src.random.seed_generator.global_seed_generator",
    "keras.src.random.seed_generator.SeedGenerator.state",
)
def shared_seed() -> Any:
    """Returns the variable behind random operations that have no seed of their own.

    Making it draws a number of Python's; that is put back, so that a script which never uses it
    draws the same numbers as before.
    """
    from keras.src.random.seed_generator import global_seed_generator

    drawn = random.getstate()
    generator = global_seed_generator()
    random.setstate(drawn)
    return generator.state


@relies_on(
    "keras.src.random.seed_generator.global_seed_generator",
    "keras.src.random.seed_generator.SeedGenerator.state",
)
def find_shared_seed() -> Any | None:
    """Returns what `shared_seed` does if it was made already."""
    generator = vars(_state()).get("global_seed_generator")
    return None if generator is None else generator.state


def forget_shared_seed() -> None:
    """Has it made anew when it is needed."""
    vars(_state()).pop("global_seed_generator", None)


# Of the state: what a user sets, and the numbers in names of layers.
_SETTINGS = (
    "custom_objects_scope_dict",
    "distribution",
    "dtype_policy",
    "global_random_seed",
    "global_seed_generator",
    "nnx_enabled",
    "object_name_uids",
    "safe_mode_saving",
)


def read_settings() -> dict[str, Any]:
    """Returns what a user has set in Keras, and the numbers in names of layers."""
    now = vars(_state())
    kept = {name: now[name] for name in _SETTINGS if name in now}
    if "object_name_uids" in kept:  # dense, dense_1
        kept["object_name_uids"] = kept["object_name_uids"].copy()
    return kept


@contextlib.contextmanager
def settings_kept(settings: Mapping[str, Any]) -> Iterator[None]:
    """Puts these settings back at the end; random numbers go on where they were."""
    generator = vars(_state()).get("global_seed_generator")
    try:
        yield
    finally:
        for name, value in settings.items():
            setattr(_state(), name, value)
        if generator is not None:
            _state().global_seed_generator = generator
