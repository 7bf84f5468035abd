"""What memfit does for itself in the script's own thread, which nobody is to be blamed for."""

import contextlib
import contextvars
from collections.abc import Iterator

_is_own_doing = contextvars.ContextVar("memfit_is_own_doing", default=False)


@contextlib.contextmanager
def own_doing() -> Iterator[None]:
    """Marks that what runs inside, such as trials for a budget, is memfit's doing."""
    token = _is_own_doing.set(True)
    try:
        yield
    finally:
        _is_own_doing.reset(token)


def is_own_doing() -> bool:
    """Whether what runs now is memfit's doing, though the script waits for it at some line."""
    return _is_own_doing.get()
