"""The rows of a batch on TensorFlow, of which a graph may not know how many there are."""

from typing import Any

import numpy as np
import tensorflow as tf

from memfit.backends.micro_batches.batch_parts import (
    check,
    cut,
    explain_rows,
    flatten,
    name_leaves,
)


def is_dense(leaf: Any) -> bool:
    """Returns whether rows of an array can be taken out of it."""
    return isinstance(leaf, tf.Tensor | tf.Variable | np.ndarray)


def checked(data: Any) -> Any:
    """Returns the batch as tensors, which fail to be there if they differ in their rows.

    Raises:
        UsageError: That is known before the batch is.
    """
    check(data, is_dense)
    data = cut(data, _as_tensor)
    if all(leaf.shape[0] is not None for leaf in flatten(data)):
        return data
    named = name_leaves(data)
    numbers = [tf.shape(leaf)[0] for leaf in named.values()]
    is_alike = tf.reduce_all(tf.stack([one == numbers[0] for one in numbers])) & (numbers[0] > 0)
    shapes = [part for name, leaf in named.items() for part in (name, tf.shape(leaf))]
    check_rows = tf.debugging.Assert(is_alike, [explain_rows("the arrays that follow"), *shapes])
    with tf.control_dependencies([check_rows]):
        return cut(data, tf.identity)


def _as_tensor(leaf: Any) -> Any:
    """Returns an array as `fit` hands it over."""
    import keras

    if not isinstance(leaf, np.ndarray):
        return leaf
    return tf.convert_to_tensor(leaf, keras.config.floatx() if leaf.dtype.kind == "f" else None)
