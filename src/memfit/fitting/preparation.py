"""Makes a model ready to train within a budget: measures, chooses a plan, installs its levers."""

import contextlib
import inspect
from collections.abc import Callable
from typing import Any

from memfit.arguments import check_compiled
from memfit.fitting.executor import choose
from memfit.fitting.first_batch import Batch, count_bytes, find_first_batch, take
from memfit.fitting.gauges import Gauge, check_budget, find_gauge
from memfit.fitting.headroom import Headroom
from memfit.fitting.levers.micro_batches import check_unguarded, has_fixed_batch
from memfit.fitting.request import Request
from memfit.fitting.throttle import add_pace, count_queued
from memfit.fitting.trial_steps import probing
from memfit.keras_private.trainer import build_with, is_built, looking_once
from memfit.messages import say
from memfit.user_code.own_calls import own_call

_TRAINED, _VALIDATION = ("x", "y", "sample_weight"), "validation_data"


@own_call()
def prepare(
    original: Callable[..., Any],
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    request: Request,
    changes: contextlib.ExitStack,
) -> dict[str, Any]:
    """Chooses how to train and makes the model ready; returns the arguments for `fit`."""
    arguments = dict(inspect.signature(original).bind(model, *args, **kwargs).arguments)
    del arguments["self"]
    check_compiled(model)
    check_unguarded(model)
    gauge = find_gauge(request.budget)
    check_budget(gauge, request.budget)
    changes.callback(gauge.trim_compiled())
    batch, arguments = find_first_batch(arguments, request.batch_size)
    was_built = is_built(model)
    build_with(model, batch if has_fixed_batch(model) else take(batch, 1))
    headroom = _measure_headroom(arguments, batch, gauge, request.budget.size_bytes)
    is_verbose = arguments.get("verbose") not in (0, "0")
    if is_verbose:
        say(
            f"Measuring a few trial steps (they are undone) to stay within {request.budget}",
            wraps=True,
        )
    # Under `memfit run`, `fit` is recorded; trials are not to be.
    fit = inspect.unwrap(original)
    with probing(fit, model, batch, gauge, shuffles=_shuffles(arguments)) as prober:
        plan = choose(prober, headroom, request, changes)
    if not was_built:
        changes.enter_context(looking_once(model))
    if is_verbose:
        say(str(plan), wraps=True)
    return add_pace(arguments, count_bytes(batch), gauge, headroom, plan)


def _shuffles(arguments: dict[str, Any]) -> bool:
    """Whether `fit` puts arrays into another order."""
    is_arrays = count_bytes(arguments.get("x")) > 0
    return is_arrays and bool(arguments.get("shuffle", True))


def _measure_headroom(
    arguments: dict[str, Any], batch: Batch, gauge: Gauge, budget_bytes: int
) -> Headroom:
    batch_bytes = count_bytes(batch)
    trained_bytes = count_bytes([arguments.get(name) for name in _TRAINED])
    is_whole_data = trained_bytes == batch_bytes
    # A step that is tried copies its batch; what is copied besides:
    more_bytes = max(trained_bytes - batch_bytes, 0) + count_bytes(arguments.get(_VALIDATION))
    return Headroom(
        budget_bytes=budget_bytes,
        idle_bytes=gauge.read(),
        data_bytes=gauge.fit_copies * more_bytes,
        queued_bytes=0 if is_whole_data else count_queued(trained_bytes) * batch_bytes,
    )
