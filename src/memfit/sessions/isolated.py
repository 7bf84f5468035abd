"""Runs a function in its own process, so that all its memory is given back at the end."""

import logging
import multiprocessing
import pickle
import signal
import traceback
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from memfit.errors import IsolatedError
from memfit.units import format_size

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_logger = logging.getLogger("memfit")


def isolated(
    function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Runs `function` in a new process and returns its result; all its memory is given back.

    The peak of the process is logged to the logger `"memfit"` at level INFO. As with every process
    that Python spawns, the function must be importable, its arguments and result must be
    picklable, and a script must start under `if __name__ == "__main__":`.

    Args:
        function: What to run.
        *args: What to call it with.
        **kwargs: The same by name.

    Raises:
        IsolatedError: If the process ended without a result, as when it was killed for memory.
        Exception: What the function raised, with the traceback of the process as a note.

    Example:
    ```python
    scores = [memfit.isolated(train_fold, fold) for fold in range(5)]
    ```
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(sender, function, args, kwargs))
    process.start()
    sender.close()
    name = getattr(function, "__name__", repr(function))
    try:
        outcome = receiver.recv()
    except EOFError:
        process.join()
        raise IsolatedError(name, _how_it_ended(process.exitcode)) from None
    finally:
        receiver.close()
    process.join()
    is_good, value, peak_bytes = outcome
    if peak_bytes is not None:
        _logger.info("%s ran in its own process: peak %s", name, format_size(peak_bytes))
    if is_good:
        return cast("Result", value)
    raise value


def _run(sender: Any, function: Any, args: Any, kwargs: Any) -> None:
    try:
        outcome: tuple[bool, Any] = (True, function(*args, **kwargs))
    except Exception as error:  # noqa: BLE001  # it is raised again on the other side
        error.add_note("In the isolated process:\n" + traceback.format_exc())
        outcome = (False, error)
    try:
        sender.send((*outcome, _peak_bytes()))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        reason = f"its result cannot be pickled ({error})"
        sender.send((False, IsolatedError(getattr(function, "__name__", "it"), reason), None))


def _peak_bytes() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _how_it_ended(code: int | None) -> str:
    if code is not None and code < 0:
        return f"{signal.Signals(-code).name} ended it"
    return f"it ended with exit code {code} and no result"
