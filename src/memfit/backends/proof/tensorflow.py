"""A proof on TensorFlow: eager, since tracing takes longer than a few steps."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

from memfit.backends.proof import AddedGradient, Gradient, Predict
from memfit.keras_private.draws import HeldDraws
from memfit.keras_private.layers import forget_added_losses, get_mask
from memfit.keras_private.trainer import call_model

IS_EAGER = True
RUNS_PYTHON = False


@contextlib.contextmanager
def quickly() -> Iterator[None]:
    """Nothing is compiled."""
    now = context.context()
    before = {name: value for name, value in vars(now).items() if name in ("_seed", "_rng")}
    try:
        yield
    finally:
        vars(now).pop("_rng", None)
        vars(now).update(before)


def densify(gradient: Any) -> Any:
    """Returns a gradient as one tensor; that of an Embedding has the rows that were looked up."""
    return tf.convert_to_tensor(gradient)


def is_variable(value: Any) -> bool:
    """Returns whether it is a `tf.Variable` with numbers."""
    return isinstance(value, tf.Variable) and value.dtype != tf.string


def read(tensor: Any) -> Any:
    """Returns its numbers."""
    return np.array(tensor)


def set_seed(seed: int) -> None:
    """Seeds TensorFlow's own operations."""
    tf.random.set_seed(seed)


def as_data(batch: Any) -> dict[str, Any]:
    """Returns the batch as a dataset: cutting arrays into batches is a graph, traced each time."""
    import keras

    def convert(one: Any) -> Any:
        return keras.tree.map_structure(
            lambda leaf: None if leaf is None else tf.convert_to_tensor(leaf),
            keras.tree.lists_to_tuples(one),
            none_is_leaf=False,
        )

    packed = keras.utils.pack_x_y_sample_weight(*(convert(one) for one in batch))
    return {"x": tf.data.Dataset.from_tensors(packed)}


def make_predict(model: Any, held: HeldDraws) -> Predict:
    """Returns what runs forward passes."""
    import keras

    def predict(x: Any) -> tuple[Any, list[Any], list[Any]]:
        y_pred = call_model(model, x, is_training=True)
        masks = [get_mask(one) for one in keras.tree.flatten(y_pred)]
        return y_pred, masks, [keras.ops.sum(one) for one in model.losses]

    return predict if model.run_eagerly else _in_graphs(model, predict, held)


def _in_graphs(model: Any, predict: Predict, held: HeldDraws) -> Predict:
    """Runs it in graphs; one knows the draws of its turn only."""
    graphs: dict[int, Any] = {}

    def predict_in_graph(x: Any) -> tuple[Any, list[Any], list[Any]]:
        found: tuple[Any, list[Any], list[Any]]
        found = graphs.setdefault(held.turn, tf.function(predict))(x)
        forget_added_losses(model)  # they are of the graph
        return found

    return predict_in_graph


def make_added_gradient(model: Any, held: HeldDraws) -> AddedGradient:
    """Returns what differentiates an added loss."""

    def differentiate(x: Any, index: int) -> list[Any]:
        weights = [one.value for one in model.trainable_variables]
        with tf.GradientTape() as tape:
            call_model(model, x, is_training=True)
            value = tf.reduce_sum(model.losses[index])
        found = tape.gradient(value, weights, unconnected_gradients="zero")
        forget_added_losses(model)
        return [tf.convert_to_tensor(one) for one in found]

    def read(x: Any, index: int) -> list[Any]:
        run = differentiate if model.run_eagerly else tf.function(differentiate)
        return [one.numpy() for one in run(x, index)]

    return read


def make_gradient(model: Any, function: Callable[[Any, Sequence[Any]], Any]) -> Gradient:
    """Returns what differentiates a function."""

    def differentiate(batch: Any, tensors: Sequence[Any]) -> list[Any]:
        wanted = [one for one in tensors if one.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(wanted)
            value = function(batch, tensors)
        found = tape.gradient(value, wanted, unconnected_gradients="zero")
        return [tf.convert_to_tensor(one).numpy() for one in found]

    return differentiate
