"""`fit` within a budget: measure, choose the fastest way that fits, train, put everything back."""

import contextlib
import contextvars
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from memfit.act.choosing import Terms, choose
from memfit.act.first_batch import count_bytes, find_first_batch, take
from memfit.act.guarding import guard
from memfit.act.probing import Prober
from memfit.backends import get_backend
from memfit.errors import BudgetError, UsageError
from memfit.measure.limits import find_limit
from memfit.measure.peak import Peak, read_tree_bytes
from memfit.plan.budget import Plan, Room
from memfit.units import format_size

_DATA = ("x", "y", "sample_weight", "validation_data")
_is_fitting = contextvars.ContextVar("memfit_is_fitting", default=False)


class BudgetWarning(UserWarning):
    """A training took more memory than it was allowed."""


def fit(
    model: Any,
    *args: Any,
    budget: str,
    allow: Sequence[str] = (),
    batchnorm: str | None = None,
    **kwargs: Any,
) -> Any:
    """Trains like `model.fit`, within a budget of memory and with the same result.

    Before training, steps of growing size are measured and undone; then the fastest way that fits
    is chosen and printed: whole batches, batches in pieces, recomputation. What was changed in
    the model for it is put back at the end.

    Args:
        model: A compiled Keras model.
        *args: Those of `model.fit`.
        budget: The most memory that this process and those it starts may take, such as `"4GB"`.
        allow: What may change the result: `"precision"` for lower precision.
        batchnorm: `"micro"` lets BatchNormalization look at one piece at a time.
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
    return fit_within(type(model).fit, model, args, kwargs, Terms(budget, tuple(allow), batchnorm))


def fit_within(
    original: Callable[..., Any],
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    terms: Terms,
) -> Any:
    """Calls `original`, a model's `fit`, within a budget."""
    if _is_fitting.get():
        raise UsageError(
            "memfit.fit was called inside memfit.fit, so one budget would count for two trainings. "
            "Call model.fit there: it counts within the outer budget."
        )
    budget_bytes = terms.budget_bytes
    arguments = dict(inspect.signature(original).bind(model, *args, **kwargs).arguments)
    del arguments["self"]
    _check_compiled(model)
    _check_budget(budget_bytes)
    token = _is_fitting.set(True)
    try:
        batch, _, arguments = find_first_batch(arguments)
        with contextlib.ExitStack() as changes:
            model._symbolic_build(data_batch=take(batch, 1))
            room = _measure_room(arguments, batch, budget_bytes)
            plan = choose(Prober(original, model, batch), room, terms, changes)
            if arguments.get("verbose") not in (0, "0"):
                print(plan, file=sys.stderr)  # noqa: T201
            with _guarded(model, plan, terms), Peak() as peak:
                history = original(model, **arguments)
            _tell_if_passed(peak.read(), budget_bytes)
        return history
    finally:
        _is_fitting.reset(token)


def _guarded(model: Any, plan: Plan, terms: Terms) -> contextlib.AbstractContextManager[object]:
    """The guard, if the model can have one: nothing else is changed."""
    try:
        return guard(model, size=plan.size, batchnorm=terms.batchnorm)
    except UsageError:
        return contextlib.nullcontext()


def _check_compiled(model: Any) -> None:
    import keras

    if not isinstance(model, keras.Model):
        raise UsageError(f"model must be a Keras model. Received: {type(model).__name__}.")
    if not model.compiled:
        raise UsageError(
            f"The model {model.name!r} is not compiled. Call model.compile(optimizer, loss) first."
        )


def _check_budget(budget_bytes: int) -> None:
    idle_bytes = read_tree_bytes()
    if budget_bytes <= idle_bytes:
        raise BudgetError(
            f"The budget is {format_size(budget_bytes)}, and this process takes "
            f"{format_size(idle_bytes)} before training. Give more than that; what is there is "
            "the frameworks, the model and the data that the script has loaded."
        )
    limit = find_limit(os.getpid())
    if budget_bytes > limit.limit_bytes:
        print(  # noqa: T201
            f"memfit: the budget of {format_size(budget_bytes)} is more than there is: "
            f"{format_size(limit.limit_bytes)} ({limit.source})",
            file=sys.stderr,
        )


def _measure_room(arguments: dict[str, Any], batch: Any, budget_bytes: int) -> Room:
    import keras

    copies = get_backend(keras.backend.backend()).FIT_COPIES_ARRAYS
    return Room(
        budget_bytes=budget_bytes,
        idle_bytes=read_tree_bytes(),
        data_bytes=count_bytes([arguments.get(name) for name in _DATA]) if copies else 0,
        batch_bytes=count_bytes(batch),
    )


def _tell_if_passed(peak_bytes: int, budget_bytes: int) -> None:
    if peak_bytes > budget_bytes:
        warnings.warn(
            f"The training took {format_size(peak_bytes)}, more than its budget of "
            f"{format_size(budget_bytes)}. Callbacks, workers and validation count too; give "
            "a lower budget to leave room for them.",
            BudgetWarning,
            stacklevel=4,
        )
