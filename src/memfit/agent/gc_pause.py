"""Keeps Python's garbage collector out of memfit's own thread.

A collection frees objects in the thread that happens to trigger it. Freed in another thread while
TensorFlow traces a function in the main one, they can make that trace fail. So while memfit's
thread works the collector is paused, and a collection on trial runs in the script's own thread.
"""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.RLock()
_is_paused = False
# Whether the script wants the collector on; it may say so while it is paused.
_is_wanted = True
_disable, _enable, _is_enabled = gc.disable, gc.enable, gc.isenabled


def is_enabled() -> bool:
    """Whether the collector is on, as far as the script is concerned."""
    return _is_wanted if _is_paused else _is_enabled()


@contextmanager
def paused() -> Iterator[None]:
    """Pauses the collector; afterwards it is what the script wants it to be."""
    global _is_paused, _is_wanted
    with _lock:
        if _is_paused:
            is_outermost = False
        else:
            is_outermost, _is_wanted, _is_paused = True, _is_enabled(), True
            _disable()
    try:
        yield
    finally:
        if is_outermost:
            with _lock:
                _is_paused = False
                if _is_wanted:
                    _enable()


def after_fork_in_child() -> None:
    """The thread that paused the collector, and may have held the lock, is not in the child."""
    global _lock, _is_paused
    _lock = threading.RLock()
    if _is_paused:
        _is_paused = False
        if _is_wanted:
            _enable()


def watch() -> None:
    """From now on what the script says of the collector holds also while it is paused."""
    gc.disable, gc.enable, gc.isenabled = _wish_off, _wish_on, is_enabled


def _wish_off() -> None:
    """Disables automatic garbage collection."""
    global _is_wanted
    with _lock:
        _is_wanted = False
        _disable()


def _wish_on() -> None:
    """Enables automatic garbage collection."""
    global _is_wanted
    with _lock:
        _is_wanted = True
        if not _is_paused:
            _enable()
