"""What a batch is made of: inputs, targets and weights, each with the samples in its first axis."""

from collections.abc import Callable
from typing import Any

from memfit.errors import UsageError

_PARTS = ("inputs", "targets", "weights")


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


def check(batch: Any, is_dense: Callable[[Any], bool]) -> None:
    """Raises if the arrays of the batch cannot be cut along their first axis, all alike.

    Args:
        batch: What a step is given.
        is_dense: Tells whether rows of an array can be taken out of it.
    """
    named = name_leaves(batch)
    for name, leaf in named.items():
        if not is_dense(leaf):
            raise UsageError(
                "Cannot split this batch into micro-batches: it contains a "
                f"{type(leaf).__name__} ({name}), and micro-batches need arrays with the samples "
                "along the first axis. Feed dense arrays, or train without memfit.split()."
            )
    lengths = {len(leaf.shape) and leaf.shape[0] for leaf in named.values()} - {None}
    if len(lengths) > 1 or 0 in lengths or not named:
        shapes = ", ".join(f"{name} {tuple(leaf.shape)}" for name, leaf in named.items())
        raise UsageError(explain_rows(shapes or "no arrays"))


def explain_rows(shapes: str) -> str:
    """Says that the arrays of a batch do not have the same rows."""
    return (
        "Cannot split this batch into micro-batches: its arrays must have one row for each sample, "
        f"and at least one. Received: {shapes}. Give each array as many rows as there are samples, "
        "or train in whole batches."
    )


def name_leaves(batch: Any) -> dict[str, Any]:
    """Returns the arrays of a batch by name, such as `inputs['ids']` or `targets[0]`."""
    import keras

    found = {}
    for part, values in zip(_PARTS, unpack(batch), strict=True):
        for path, leaf in keras.tree.flatten_with_path(values):
            if leaf is not None:
                found[part + "".join(f"[{key!r}]" for key in path)] = leaf
    return found
