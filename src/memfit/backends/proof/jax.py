"""A proof on JAX: compiled, since eager operations are compiled one by one."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from memfit.backends.proof import AddedGradient, Gradient, Predict
from memfit.keras_private.draws import HeldDraws
from memfit.keras_private.layers import get_mask
from memfit.keras_private.trainer import training_argument

IS_EAGER = False
RUNS_PYTHON = False
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


def is_variable(value: Any) -> bool:
    """JAX has no variables."""
    return False


def read(tensor: Any) -> Any:
    """Returns its numbers."""
    return np.array(tensor)


def set_seed(seed: int) -> None:
    """JAX has no random state of its own."""


def as_data(batch: Any) -> dict[str, Any]:
    """Returns the batch as arrays."""
    import keras

    x, y, sample_weight = batch
    number = len(next(one for one in keras.tree.flatten(batch) if one is not None))
    return {"x": x, "y": y, "sample_weight": sample_weight, "batch_size": number}


def make_predict(model: Any, held: HeldDraws) -> Predict:
    """Returns what runs forward passes: compiled once for each number of rows."""
    import keras

    def run(trainable: Any, others: Any, x: Any, turn: Any) -> tuple[Any, Any, Any]:
        before, held.turn = held.turn, turn
        try:
            y_pred, _, losses = model.stateless_call(
                trainable, others, x, return_losses=True, **training_argument(model)
            )
        finally:
            held.turn = before
        return y_pred, [get_mask(one) for one in keras.tree.flatten(y_pred)], losses

    run_quickly = run if model.run_eagerly else jax.jit(run)

    def predict(x: Any) -> tuple[Any, list[Any], list[Any]]:
        trainable = [one.value for one in model.trainable_variables]
        others = [one.value for one in model.non_trainable_variables]
        y_pred, masks, losses = run_quickly(trainable, others, x, held.turn)
        return y_pred, list(masks), [jnp.sum(one) for one in losses]

    return predict


def make_added_gradient(model: Any, held: HeldDraws) -> AddedGradient:
    """Returns what differentiates an added loss."""

    def run(trainable: Any, others: Any, x: Any, index: int) -> Any:
        _, _, losses = model.stateless_call(
            trainable, others, x, return_losses=True, **training_argument(model)
        )
        return jnp.sum(losses[index])

    gradient = jax.grad(run)
    find = gradient if model.run_eagerly else jax.jit(gradient, static_argnums=3)

    def differentiate(x: Any, index: int) -> list[Any]:
        trainable = [one.value for one in model.trainable_variables]
        others = [one.value for one in model.non_trainable_variables]
        return [np.asarray(one) for one in find(trainable, others, x, index)]

    return differentiate


def make_gradient(model: Any, function: Callable[[Any, Sequence[Any]], Any]) -> Gradient:
    """Returns what differentiates a function."""

    def of_wanted(wanted: Sequence[Any], batch: Any, tensors: Sequence[Any]) -> Any:
        rest = iter(wanted)
        return function(batch, [next(rest) if _is_real(one) else one for one in tensors])

    gradient = jax.grad(of_wanted)
    find = gradient if model.run_eagerly else jax.jit(gradient)

    def differentiate(batch: Any, tensors: Sequence[Any]) -> list[Any]:
        wanted = [one for one in tensors if _is_real(one)]
        return [np.asarray(one) for one in find(wanted, batch, tensors)]

    return differentiate


def _is_real(tensor: Any) -> bool:
    return bool(jnp.issubdtype(tensor.dtype, jnp.floating))
