"""A proof on JAX: compiled, since eager operations are compiled one by one."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from memfit.keras_private.layers import get_mask
from memfit.keras_private.trainer import training_argument

IS_EAGER = False
_QUICK = "jax_disable_most_optimizations"


@contextlib.contextmanager
def quickly() -> Iterator[None]:
    """Has XLA optimize next to nothing."""
    before = jax.config.values[_QUICK]
    jax.config.update(_QUICK, True)
    try:
        yield
    finally:
        jax.config.update(_QUICK, before)


def densify(gradient: Any) -> Any:
    """Every gradient is one array."""
    return gradient


def set_seed(seed: int) -> None:
    """JAX has no random state of its own."""


def predict(model: Any, x: Any) -> tuple[Any, list[Any], list[Any]]:
    """Returns predictions, their masks, and added losses."""
    import keras

    def run(trainable: Any, others: Any, x: Any) -> tuple[Any, Any, Any]:
        y_pred, _, losses = model.stateless_call(
            trainable, others, x, return_losses=True, **training_argument(model)
        )
        return y_pred, [get_mask(one) for one in keras.tree.flatten(y_pred)], losses

    trainable = [one.value for one in model.trainable_variables]
    others = [one.value for one in model.non_trainable_variables]
    y_pred, masks, losses = jax.jit(run)(trainable, others, x)
    return y_pred, list(masks), [jnp.sum(one) for one in losses]


def differentiate(function: Callable[[Sequence[Any]], Any], tensors: Sequence[Any]) -> list[Any]:
    """Returns the gradient by each tensor."""
    is_real = [jnp.issubdtype(one.dtype, jnp.floating) for one in tensors]
    wanted = [one for one, real in zip(tensors, is_real, strict=True) if real]

    def of_wanted(chosen: Sequence[Any]) -> Any:
        rest = iter(chosen)
        filled = [next(rest) if real else one for one, real in zip(tensors, is_real, strict=True)]
        return function(filled)

    return [np.asarray(one) for one in jax.jit(jax.grad(of_wanted))(wanted)]
