"""A proof on torch: everything runs as it is written."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from memfit.keras_private.layers import get_mask
from memfit.keras_private.trainer import call_model

IS_EAGER = True


def quickly() -> contextlib.AbstractContextManager[None]:
    """Nothing is compiled."""
    return contextlib.nullcontext()


def densify(gradient: Any) -> Any:
    """Returns a gradient as one tensor."""
    return gradient.to_dense() if gradient.is_sparse else gradient


def set_seed(seed: int) -> None:
    """Seeds torch."""
    torch.manual_seed(seed)


def predict(model: Any, x: Any) -> tuple[Any, list[Any], list[Any]]:
    """Returns predictions, their masks, and added losses."""
    import keras

    with torch.no_grad():
        y_pred = call_model(model, x, is_training=True)
        masks = [get_mask(one) for one in keras.tree.flatten(y_pred)]
        return y_pred, masks, [keras.ops.sum(one) for one in model.losses]


def differentiate(function: Callable[[Sequence[Any]], Any], tensors: Sequence[Any]) -> list[Any]:
    """Returns the gradient by each tensor."""
    leaves = [one.detach().clone() for one in tensors]
    is_real = [one.is_floating_point() for one in leaves]
    wanted = [one.requires_grad_() for one, real in zip(leaves, is_real, strict=True) if real]
    with torch.enable_grad():
        value = function(leaves)
    if not value.requires_grad:
        return [torch.zeros_like(one).numpy(force=True) for one in wanted]
    found = torch.autograd.grad(value, wanted, allow_unused=True, materialize_grads=True)
    return [one.numpy(force=True) for one in found]
