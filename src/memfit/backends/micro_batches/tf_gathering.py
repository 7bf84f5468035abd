"""The predictions of a batch on TensorFlow, gathered in a loop over its micro-batches."""

from typing import Any

import tensorflow as tf

from memfit.backends.micro_batches.batch_parts import flatten
from memfit.keras_private.layers import get_mask, set_mask
from memfit.keras_private.trainer import output_spec


class Gathering:
    """Arrays for the outputs of a model and for their masks, which the loop hands on.

    Args:
        model: A built model.
        x: The inputs of a batch.
    """

    def __init__(self, model: Any, x: Any) -> None:
        self._spec = output_spec(model, x)
        self._outputs = flatten(self._spec)
        self._mask_shapes: list[Any] = []  # `None` for outputs without a mask; told by `write`

    def make_arrays(self) -> list[Any]:
        """Returns arrays with nothing in them."""
        types = [one.dtype for one in self._outputs]
        return [
            tf.TensorArray(dtype, size=0, dynamic_size=True, infer_shape=False)
            for dtype in [*types, *["bool"] * len(types)]
        ]

    def write(self, arrays: list[Any], y_pred: Any) -> list[Any]:
        """Returns the arrays with the predictions of one more micro-batch."""
        outputs = flatten(y_pred)
        masks = [get_mask(one) for one in outputs]
        self._mask_shapes = [None if one is None else one.shape for one in masks]
        return [
            array if one is None else array.write(array.size(), one)
            for array, one in zip(arrays, [*outputs, *masks], strict=True)
        ]

    def join(self, arrays: list[Any]) -> Any:
        """Returns the predictions of the batch, with their masks."""
        import keras

        number = len(self._outputs)
        gathered = [
            _join(array, one.shape)
            for array, one in zip(arrays[:number], self._outputs, strict=True)
        ]
        for tensor, array, shape in zip(gathered, arrays[number:], self._mask_shapes, strict=True):
            if shape is not None:
                set_mask(tensor, _join(array, shape))
        return keras.tree.pack_sequence_as(self._spec, gathered)


def _join(array: Any, shape: Any) -> Any:
    whole = array.concat()
    whole.set_shape([None, *shape[1:]])
    return whole
