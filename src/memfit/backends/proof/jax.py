"""A proof on JAX: compiled, since eager operations are compiled one by one."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from memfit.backends.proof import Gradient, Predict
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

    @jax.jit  # type: ignore[untyped-decorator]
    def run(trainable: Any, others: Any, x: Any, turn: Any) -> tuple[Any, Any, Any]:
        before, held.turn = held.turn, turn
        try:
            y_pred, _, losses = model.stateless_call(
                trainable, others, x, return_losses=True, **training_argument(model)
            )
        finally:
            held.turn = before
        return y_pred, [get_mask(one) for one in keras.tree.flatten(y_pred)], losses

    def predict(x: Any) -> tuple[Any, list[Any], list[Any]]:
        trainable = [one.value for one in model.trainable_variables]
        others = [one.value for one in model.non_trainable_variables]
        y_pred, masks, losses = run(trainable, others, x, held.turn)
        return y_pred, list(masks), [jnp.sum(one) for one in losses]

    return predict


def make_gradient(function: Callable[[Any, Sequence[Any]], Any]) -> Gradient:
    """Returns what differentiates a function."""

    def of_wanted(wanted: Sequence[Any], batch: Any, tensors: Sequence[Any]) -> Any:
        rest = iter(wanted)
        return function(batch, [next(rest) if _is_real(one) else one for one in tensors])

    compiled = jax.jit(jax.grad(of_wanted))

    def differentiate(batch: Any, tensors: Sequence[Any]) -> list[Any]:
        wanted = [one for one in tensors if _is_real(one)]
        return [np.asarray(one) for one in compiled(wanted, batch, tensors)]

    return differentiate


def _is_real(tensor: Any) -> bool:
    return bool(jnp.issubdtype(tensor.dtype, jnp.floating))
