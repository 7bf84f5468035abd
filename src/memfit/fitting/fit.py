"""`fit` within a budget: measure, choose the fastest way that fits, train, put everything back."""

import contextlib
import contextvars
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from memfit.budget import Budget
from memfit.errors import BudgetError, UsageError
from memfit.fitting.gauges import find_gauge
from memfit.fitting.preparation import prepare
from memfit.fitting.request import Request
from memfit.heap.release import release
from memfit.messages import say
from memfit.units import format_size
from memfit.user_code.frames import is_user_file

_KERAS_BATCH_SIZE = 32  # what Keras takes if nobody says
_is_fitting = contextvars.ContextVar("memfit_is_fitting", default=False)


class BudgetWarning(UserWarning):
    """A training took more memory than it was allowed."""


def fit(
    model: Any,
    *args: Any,
    budget: str | None = None,
    device_budget: str | None = None,
    allow: Sequence[str] = (),
    batchnorm: str | None = None,
    **kwargs: Any,
) -> Any:
    """Trains like `model.fit`, within a budget of memory and with the same result.

    Before training, steps of growing size are measured and undone; then the fastest way that fits
    is chosen and printed: whole batches, micro-batches, recomputation. What was changed in
    the model for it is put back at the end.

    Args:
        model: A compiled Keras model.
        *args: Those of `model.fit`.
        budget: The most memory that this process and those it starts may take, such as `"4GB"`.
        device_budget: Given instead: the most that tensors may take of each accelerator.
        allow: What may change the result: `"precision"` for lower precision.
        batchnorm: How BatchNormalization may train in micro-batches: `"exact"` or `"micro"`, as in
            `memfit.split`.
        **kwargs: Those of `model.fit`.

    Returns:
        What `model.fit` returns.

    Raises:
        BudgetError: The budget cannot be kept; says the smallest that could.
        UsageError: An argument cannot be used, and why.

    Example:
        ```python
        memfit.fit(model, x, y, batch_size=256, budget="4GB", epochs=10)
        ```
    """
    request = Request(Budget.parse(budget, device_budget), allow, batchnorm)
    return fit_within(type(model).fit, model, args, kwargs, request)


def fit_within(
    original: Callable[..., Any],
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    request: Request,
) -> Any:
    """Calls `original`, a model's `fit`, within a budget."""
    if _is_fitting.get():
        raise UsageError(
            "memfit.fit was called inside another memfit.fit, so two budgets would overlap. "
            "Call model.fit there: the outer budget covers it."
        )
    token = _is_fitting.set(True)
    try:
        with contextlib.ExitStack() as changes:
            arguments = prepare(original, model, args, kwargs, request, changes)
            return _train(original, model, arguments, request)
    finally:
        _is_fitting.reset(token)


def fit_unchanged(
    original: Callable[..., Any],
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    budget: Budget,
) -> Any:
    """Calls the `fit` of a script that knows nothing of memfit, within a budget where that works.

    A training that memfit cannot look into runs as it would without memfit, and is told of.

    Args:
        original: The model's own `fit`.
        model: The model.
        args: What it is called with.
        kwargs: The same, by name.
        budget: What it may take.

    Raises:
        BudgetError: The budget cannot be kept; nothing was trained.
    """
    if _is_fitting.get():
        return original(model, *args, **kwargs)
    token = _is_fitting.set(True)
    try:
        with contextlib.ExitStack() as changes:
            request = Request(budget, batch_size=_KERAS_BATCH_SIZE)
            try:
                arguments = prepare(original, model, args, kwargs, request, changes)
            except BudgetError:
                raise
            except Exception as error:  # noqa: BLE001  the script must go on
                say(f"this fit runs without a budget. {error}", wraps=True)
                changes.close()
                return original(model, *args, **kwargs)
            return _train(original, model, arguments, request)
    finally:
        _is_fitting.reset(token)


def _train(
    original: Callable[..., Any], model: Any, arguments: dict[str, Any], request: Request
) -> Any:
    release()
    with find_gauge(request.budget).watch() as read_peak:
        history = original(model, **arguments)
    _tell_if_passed(read_peak(), request.budget)
    return history


def _tell_if_passed(peak_bytes: int, budget: Budget) -> None:
    if peak_bytes > budget.size_bytes:
        warnings.warn(
            f"The training took {format_size(peak_bytes)}, more than its budget of {budget}. "
            "Callbacks, workers and validation count too: a lower budget leaves room for them. "
            "If memory grows from epoch to epoch, no budget helps: memfit run shows why.",
            BudgetWarning,
            stacklevel=_count_frames(),
        )


def _count_frames() -> int:
    """How far up the user's own call is; as warnings count from the one who calls this."""
    frame, number = sys._getframe(1), 1
    while frame.f_back is not None and not is_user_file(frame.f_code.co_filename):
        frame, number = frame.f_back, number + 1
    return number
