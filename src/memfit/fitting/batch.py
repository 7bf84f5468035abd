"""A batch as a training step gets it, and data as it is given to `fit`."""

import math
from typing import Any

from memfit.errors import UsageError
from memfit.fitting.proof.gate import check_rows
from memfit.fitting.proof.rows import leaves, take


def unpack(batch: Any) -> tuple[Any, Any, Any]:
    """Returns inputs, targets and weights of a batch; `None` for what it does not have."""
    import keras

    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(batch)
    return x, y, sample_weight


def first_rows(batch: Any, number: int) -> Any:
    """Returns the first samples of a batch, nested as the batch is."""
    return take(batch, 0, number)


def explain_uncut(batch: Any) -> str | None:
    """Returns why a batch has no rows that could be taken from it, or `None` if it has."""
    try:
        check_rows(batch)
        take(batch, 0, 1)
    except UsageError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001  such as a sparse tensor's
        return f"Batches of this kind of data cannot be cut: {error}"
    return None


def count_samples(batch: Any) -> int:
    """Returns how many samples a batch has, by its first array; 1 if that has no axis."""
    shape = tuple(getattr(next(iter(leaves(batch)), None), "shape", ()))
    return int(shape[0] or 1) if shape else 1


def is_arrays(x: Any) -> bool:
    """Returns whether `x` is an array or a structure of arrays."""
    found = leaves(x)
    return bool(found) and all(
        hasattr(leaf, "shape") and hasattr(leaf, "__getitem__") for leaf in found
    )


def count_bytes(arrays: Any) -> int:
    """Returns the size of all arrays in a batch or another structure."""
    return sum(_size_bytes(leaf) for leaf in leaves(arrays))


def _size_bytes(leaf: Any) -> int:
    size_bytes = getattr(leaf, "nbytes", None)
    if isinstance(size_bytes, int):
        return size_bytes
    if hasattr(leaf, "memory_usage"):  # a table of pandas
        return int(leaf.memory_usage().sum())
    item_bytes = getattr(getattr(leaf, "dtype", None), "size", None)  # of TensorFlow
    if not isinstance(item_bytes, int):
        return 0
    return item_bytes * math.prod(int(length or 1) for length in leaf.shape)
