"""Calls that memfit makes itself in the script's thread, which no line of the script causes."""

import contextlib
import contextvars
from collections.abc import Iterator

_is_own_call = contextvars.ContextVar("memfit_is_own_call", default=False)


@contextlib.contextmanager
def own_call() -> Iterator[None]:
    """Marks that memfit runs what is inside, such as trial steps for a budget."""
    token = _is_own_call.set(True)
    try:
        yield
    finally:
        _is_own_call.reset(token)


def is_own_call() -> bool:
    """Whether memfit runs this itself, although the script waits for it at some line."""
    return _is_own_call.get()
