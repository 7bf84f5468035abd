"""An error inside memfit never ends the training: it is recorded, and the training continues.

An error that a signal handler of the user's raised while memfit was at work is the user's: it goes
on to the script, as it would from any other line.
"""

import contextlib
import functools
import signal
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType
from typing import Any, ParamSpec, TypeVar

from memfit.slots import class_bases, class_namespace

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
        except Exception as error:  # this is the one place for it
            if _is_of_signal_handler(error):
                raise
            _report(getattr(function, "__qualname__", repr(function)), error)
            return None

    return call


def _is_of_signal_handler(error: BaseException) -> bool:
    """Whether a signal handler is among the functions that an error came through."""
    codes = set(map(_code_of, map(signal.getsignal, signal.valid_signals()))) - {None}
    trace = error.__traceback__
    while trace is not None and codes:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def _code_of(handler: Any) -> CodeType | None:
    """The code that runs when a handler is called: a function, a method, or an object."""
    while type(handler) is functools.partial:
        handler = handler.func
    if type(handler) is MethodType:
        handler = handler.__func__
    if type(handler) is not FunctionType:
        calls = (class_namespace(one).get("__call__") for one in class_bases(type(handler)))
        handler = next((one for one in calls if type(one) is FunctionType), None)
    return None if handler is None else handler.__code__


def _report(where: str, error: Exception) -> None:
    if on_trouble is None:
        return
    with contextlib.suppress(Exception):  # the recorder itself failed
        on_trouble(where, error)
