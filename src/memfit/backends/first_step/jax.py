"""JAX: `fit` takes the values out of the variables and hands them to the step as its state."""

import itertools
from collections.abc import Callable
from typing import Any

import jax

from memfit.backends.first_step import OnFirst, Which
from memfit.backends.first_step.held_function import HeldFunction
from memfit.keras_private.trainer import (
    attach_jax_state,
    has_values,
    jax_step,
    take_jax_state,
)

_TRAINING = ("trainable", "non_trainable", "optimizer", "metrics")
_TESTING = ("trainable", "non_trainable", "metrics")


def hold(
    model: Any,
    on_first: OnFirst,
    *,
    which: Which = "train",
    on_begin: Callable[[], None] | None = None,
) -> Callable[[], None]:
    """Calls `on_first` with the first batch of a training, before the step runs on it."""
    return HeldFunction(model, on_first, which, _intercept, on_begin).install()


def _intercept(holding: HeldFunction, function: Any, state: Any, iterator: Any) -> Any:
    taken = list(itertools.islice(iterator, 1))
    if not taken:
        return function(state, iterator)
    kinds = _TRAINING if holding.is_training else _TESTING
    _trace(function, state, taken[0])
    given = [dict(zip(kinds, state, strict=True))]
    del state
    state = call_between(holding.model, given, lambda: holding.call_first(taken[0]))
    return holding.function(state, itertools.chain(taken, iterator))


def call_between(model: Any, given: list[dict[str, Any]], call: Callable[[], None]) -> Any:
    """Calls with the values in the variables; returns them as a step takes them.

    Args:
        model: A model inside of its `fit`.
        given: The values by kind, taken out of this list.
        call: What is called.
    """
    is_purged = not has_values(model)
    state = given.pop()
    attach_jax_state(model, state)
    kinds = tuple(state)
    del state
    call()
    return take_jax_state(model, kinds, is_purged=is_purged)


def _trace(function: Any, state: Any, batch: Any) -> None:
    """Traces a compiled step; what it does while it is traced happens once, and now."""
    step = jax_step(function)
    if hasattr(step, "lower"):
        jax.eval_shape(step, state, batch)


def make_feed(batch: Any) -> Any:
    """Returns an iterator."""
    return iter([batch])
