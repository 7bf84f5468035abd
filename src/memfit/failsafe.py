"""An error inside memfit never ends the training: it is recorded, and the training continues."""

import contextlib
import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# Set by the recorder of this process, so that failures are in the recording.
on_trouble: Callable[[str, Exception], None] | None = None


def harmless(
    function: Callable[Arguments, Result],
) -> Callable[Arguments, Result | None]:
    """Returns `function` made safe: an error is recorded and `None` returned in its place."""

    @functools.wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result | None:
        try:
            return function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001  # this is the one place for it
            _report(getattr(function, "__qualname__", repr(function)), error)
            return None

    return call


def _report(where: str, error: Exception) -> None:
    if on_trouble is None:
        return
    with contextlib.suppress(Exception):  # the recorder itself failed
        on_trouble(where, error)
