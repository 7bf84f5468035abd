"""What a batch is made of: inputs, targets and weights, each with the samples in its first axis."""

from collections.abc import Callable
from typing import Any

from memfit.errors import UsageError


def flatten(batch: Any) -> list[Any]:
    """Returns the arrays of a batch, without those that are not there."""
    import keras

    return [leaf for leaf in keras.tree.flatten(batch) if leaf is not None]


def cut(batch: Any, slice_one: Callable[[Any], Any]) -> Any:
    """Returns the batch with every array cut by `slice_one`."""
    import keras

    return keras.tree.map_structure(
        lambda leaf: None if leaf is None else slice_one(leaf), batch, none_is_leaf=False
    )


def unpack(batch: Any) -> tuple[Any, Any, Any]:
    """Returns inputs, targets and weights, as Keras tells them apart."""
    import keras

    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(batch)
    return x, y, sample_weight


def check(batch: Any) -> None:
    """Raises if an array of the batch cannot be cut along its first axis."""
    for leaf in flatten(batch):
        if not hasattr(leaf, "shape") or type(leaf).__name__ in ("RaggedTensor", "SparseTensor"):
            raise UsageError(
                "Cannot split this batch into micro-batches: it contains a "
                f"{type(leaf).__name__}, and micro-batches need arrays with the samples along the "
                "first axis. Feed dense arrays, or train without memfit.split()."
            )
