"""The variables of an optimizer: `build` makes them, nothing of Keras takes them away again."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from memfit.keras_private.names import relies_on

_OPTIMIZER = "keras.src.optimizers.base_optimizer.BaseOptimizer"


@relies_on(f"{_OPTIMIZER}._trainable_variables")
def trained_variables(optimizer: Any) -> list[Any]:
    """Returns the variables of the model that an optimizer was built for."""
    return list(optimizer._trainable_variables)


@relies_on(
    f"{_OPTIMIZER}._variables",
    f"{_OPTIMIZER}._untrack_variable",
    f"{_OPTIMIZER}._trainable_variables",
    f"{_OPTIMIZER}._trainable_variables_indices",
)
def remember_unbuilt(optimizer: Any) -> Callable[[], None]:
    """Returns what takes back a `build` that failed in the middle, also of inner optimizers.

    `build` sets `_trainable_variables` and their `_trainable_variables_indices`, makes variables,
    which `_variables` tracks, and sets attributes that hold them.
    """
    before = [(one, set(vars(one)), list(one._variables)) for one in _chain(optimizer)]

    def unbuild() -> None:
        for one, attributes, variables in before:
            known = {id(variable) for variable in variables}
            for variable in one.__dict__["_variables"][:]:
                if id(variable) not in known:
                    one._untrack_variable(variable)
            for name in set(vars(one)) - attributes:
                with contextlib.suppress(AttributeError):
                    delattr(one, name)
            one._trainable_variables_indices.clear()
            one._trainable_variables = []
            one.built = False

    return unbuild


def _chain(optimizer: Any) -> Iterator[Any]:
    """Gives the optimizer and those that it wraps, such as for loss scaling."""
    while optimizer is not None:
        yield optimizer
        optimizer = getattr(optimizer, "inner_optimizer", None)
