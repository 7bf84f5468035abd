"""A proof on torch: everything runs as it is written."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from memfit.backends.proof import AddedGradient, Gradient, Predict
from memfit.keras_private.draws import HeldDraws
from memfit.keras_private.layers import get_mask
from memfit.keras_private.trainer import call_model

IS_EAGER = True
RUNS_PYTHON = True


def quickly() -> contextlib.AbstractContextManager[None]:
    """Nothing is compiled."""
    return contextlib.nullcontext()


def densify(gradient: Any) -> Any:
    """Returns a gradient as one tensor."""
    return gradient.to_dense() if gradient.is_sparse else gradient


def is_variable(value: Any) -> bool:
    """Returns whether it is a tensor that may be written to."""
    return isinstance(value, torch.Tensor) and value.is_leaf and value.layout == torch.strided


def read(tensor: Any) -> Any:
    """Returns its numbers."""
    is_brain_float = tensor.dtype == torch.bfloat16
    return (tensor.float() if is_brain_float else tensor).numpy(force=True).copy()


def set_seed(seed: int) -> None:
    """Seeds torch."""
    torch.manual_seed(seed)


def as_data(batch: Any) -> dict[str, Any]:
    """Returns the batch as arrays."""
    import keras

    x, y, sample_weight = batch
    number = len(next(one for one in keras.tree.flatten(batch) if one is not None))
    return {"x": x, "y": y, "sample_weight": sample_weight, "batch_size": number}


def make_predict(model: Any, held: HeldDraws) -> Predict:
    """Returns what runs forward passes."""
    import keras

    def predict(x: Any) -> tuple[Any, list[Any], list[Any]]:
        with torch.no_grad():
            y_pred = call_model(model, x, is_training=True)
            masks = [get_mask(one) for one in keras.tree.flatten(y_pred)]
            return y_pred, masks, [keras.ops.sum(one) for one in model.losses]

    return predict


def make_added_gradient(model: Any, held: HeldDraws) -> AddedGradient:
    """Returns what differentiates an added loss."""

    def differentiate(x: Any, index: int) -> list[Any]:
        weights = [one.value for one in model.trainable_variables]
        with torch.enable_grad():
            call_model(model, x, is_training=True)
            value = model.losses[index].sum()
        if not value.requires_grad:
            return [torch.zeros_like(one).numpy(force=True) for one in weights]
        found = torch.autograd.grad(value, weights, allow_unused=True, materialize_grads=True)
        return [one.numpy(force=True) for one in found]

    return differentiate


def make_gradient(model: Any, function: Callable[[Any, Sequence[Any]], Any]) -> Gradient:
    """Returns what differentiates a function."""

    def differentiate(batch: Any, tensors: Sequence[Any]) -> list[Any]:
        leaves = [one.detach().clone() for one in tensors]
        wanted = [one.requires_grad_() for one in leaves if one.is_floating_point()]
        with torch.enable_grad():
            value = function(batch, leaves)
        if not value.requires_grad:
            return [torch.zeros_like(one).numpy(force=True) for one in wanted]
        found = torch.autograd.grad(value, wanted, allow_unused=True, materialize_grads=True)
        return [one.numpy(force=True) for one in found]

    return differentiate
