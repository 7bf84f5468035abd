"""A proof on TensorFlow: eager, since tracing takes longer than a few steps."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from memfit.keras_private.layers import get_mask
from memfit.keras_private.trainer import call_model

IS_EAGER = True


def quickly() -> contextlib.AbstractContextManager[None]:
    """Nothing is compiled."""
    return contextlib.nullcontext()


def densify(gradient: Any) -> Any:
    """Returns a gradient as one tensor; that of an Embedding has the rows that were looked up."""
    return tf.convert_to_tensor(gradient)


def set_seed(seed: int) -> None:
    """Seeds TensorFlow's own operations."""
    tf.random.set_seed(seed)


def predict(model: Any, x: Any) -> tuple[Any, list[Any], list[Any]]:
    """Returns predictions, their masks, and added losses."""
    import keras

    y_pred = call_model(model, x, is_training=True)
    masks = [get_mask(one) for one in keras.tree.flatten(y_pred)]
    return y_pred, masks, [keras.ops.sum(one) for one in model.losses]


def differentiate(function: Callable[[Sequence[Any]], Any], tensors: Sequence[Any]) -> list[Any]:
    """Returns the gradient by each tensor."""
    wanted = [one for one in tensors if one.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(wanted)
        value = function(tensors)
    found = tape.gradient(value, wanted, unconnected_gradients="zero")
    return [tf.convert_to_tensor(one).numpy() for one in found]
