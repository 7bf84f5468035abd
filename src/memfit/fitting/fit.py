"""`fit` within a budget: measure, choose the fastest way that fits, train, put everything back."""

import contextlib
import contextvars
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from memfit.arguments import check_compiled
from memfit.budget import Budget
from memfit.errors import BudgetError, UsageError
from memfit.fitting.arguments_of_fit import check_batch_size, name_arguments
from memfit.fitting.held_fit import HeldFit, OnUncontrolled
from memfit.fitting.levers.cuttable_models import check_unguarded
from memfit.fitting.request import Request
from memfit.messages import say
from memfit.units import format_size
from memfit.user_code.frames import is_user_file

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

    `model.fit` begins, and is held at its first batch. With that batch, steps of growing size are
    measured and undone; then the fastest way that fits is chosen and printed: whole batches,
    micro-batches, recomputation. What changes steps is proved first, on rows of the batch, to
    leave the training the same. Then that very `fit` goes on. What was changed in the model for
    it is put back at the end.

    Args:
        model: A compiled Keras model.
        *args: Those of `model.fit`.
        budget: The most memory that this process and those it starts may take, such as `"4GB"`.
        device_budget: Given instead: the most that tensors may take of each accelerator.
        allow: What may change the result: `"precision"` for lower precision; `"unverified"` for
            micro-batches of which it cannot be proved that they do not.
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
    arguments = name_arguments(original, model, args, kwargs)
    check_compiled(model)
    check_unguarded(model)
    check_batch_size(arguments)
    with _fitting(), contextlib.ExitStack() as changes:
        held = HeldFit(model, arguments, request, changes)
        history = original(model, **held.arguments)
        _tell_if_passed(held.read_peak() or 0, request.budget)
        return history


def fit_unchanged(
    original: Callable[..., Any],
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    budget: Budget,
    note: OnUncontrolled,
) -> Any:
    """Calls the `fit` of a script that knows nothing of memfit, within a budget where that works.

    A training that memfit cannot control runs as it would without memfit, and is told of.

    Args:
        original: The model's own `fit`.
        model: The model.
        args: What it is called with.
        kwargs: The same, by name.
        budget: What it may take.
        note: Is told why a training is not controlled.

    Raises:
        BudgetError: The budget cannot be kept; nothing was trained.
    """

    def tell(why: str) -> None:
        say(f"THE BUDGET DOES NOT CONTROL THIS FIT, which runs as it is: {why}", wraps=True)
        note(why)

    if _is_fitting.get():
        return original(model, *args, **kwargs)
    with _fitting(), contextlib.ExitStack() as changes:
        try:
            check_compiled(model)
            check_unguarded(model)
            arguments = name_arguments(original, model, args, kwargs)
            held = HeldFit(model, arguments, Request(budget), changes, tell)
        except BudgetError:
            raise
        except Exception as error:  # noqa: BLE001  the script must go on
            changes.close()
            tell(str(error))
            return original(model, *args, **kwargs)
        history = original(model, **held.arguments)
        _tell_if_passed(held.read_peak() or 0, budget)
        return history


@contextlib.contextmanager
def _fitting() -> Iterator[None]:
    token = _is_fitting.set(True)
    try:
        yield
    finally:
        _is_fitting.reset(token)


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
