"""torch: Keras has taken the batch already; modules are in the mode for training."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from memfit.backends.first_step import OnFirst, Which
from memfit.backends.first_step.held_function import HeldFunction


def hold(
    model: Any,
    on_first: OnFirst,
    *,
    which: Which = "train",
    on_begin: Callable[[], None] | None = None,
) -> Callable[[], None]:
    """Calls `on_first` with the first batch of a training, before the step runs on it."""
    return HeldFunction(model, on_first, which, _intercept, on_begin).install()


def _intercept(holding: HeldFunction, _function: Any, data: Any) -> Any:
    with modules_kept(holding.model):
        holding.call_first(data[0])
    return holding.function(data)


@contextlib.contextmanager
def modules_kept(model: Any) -> Iterator[None]:
    """Puts back the mode of each module, which ends with a `fit`, and gradients."""
    modes = [(module, module.training) for module in model.modules()]
    gradients = [(one, one.grad) for one in model.parameters()]
    try:
        yield
    finally:
        for module, is_training in modes:
            module.training = is_training
        for parameter, gradient in gradients:
            parameter.grad = gradient


def make_feed(batch: Any) -> Any:
    """Returns what is looped over."""
    return [batch]
