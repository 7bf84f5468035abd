"""The first batch of what a user gives to `fit`, without using any of it up."""

from collections.abc import Iterator
from types import GeneratorType
from typing import Any

from memfit.arguments import check_whole_number
from memfit.backends.user_datasets import (
    collate_first,
    collates_rows,
    element_spec,
    find_batch_size,
    is_tf_dataset,
    numpy_dtype,
)
from memfit.errors import UsageError

Batch = tuple[Any, Any, Any]


def find_first_batch(
    arguments: dict[str, Any], batch_size: int | None = None
) -> tuple[Batch, dict[str, Any]]:
    """Returns inputs, targets and weights of a batch, and the arguments to go on with.

    A generator is read once; what it gave is put back in front of it. Of a `tf.data` pipeline the
    shapes are taken, since a look into it could change the order in which it shuffles.

    Args:
        arguments: Those of `fit`, by name.
        batch_size: What is taken for arrays if the arguments do not say.

    Raises:
        UsageError: The arguments do not say what a batch is.
    """
    x: Any = arguments.get("x")
    if isinstance(x, GeneratorType):
        try:
            first = next(x)
        except StopIteration:
            raise UsageError(
                "The generator yields no batch. Received: an empty generator."
            ) from None
        batch = _unpack(first)
        return batch, {**arguments, "x": _continue(first, x)}
    if _is_array_like(x):
        arguments = {"batch_size": batch_size, **arguments}
        batch = _cut_arrays(arguments)
    elif is_tf_dataset(x):
        batch = _make_from_specs(x)
    elif collates_rows(x):
        batch = _unpack(collate_first(x))
    elif hasattr(x, "__getitem__") and hasattr(x, "__len__"):
        batch = _unpack(x[0])
    else:
        raise UsageError(
            f"Cannot read a batch of this data. Received: x of type {type(x).__name__}. "
            "Give arrays, a keras.utils.PyDataset, a tf.data.Dataset, a torch DataLoader or a "
            "generator."
        )
    return batch, arguments


def count_samples(batch: Batch) -> int:
    """Returns how many samples a batch has."""
    return int(_leaves(batch)[0].shape[0])


def take(batch: Batch, num_samples: int) -> Batch:
    """Returns the first samples of a batch."""
    x, y, sample_weight = (_take(part, num_samples) for part in batch)
    return x, y, sample_weight


def count_bytes(arrays: Any) -> int:
    """Returns the size of all arrays in a batch or another structure."""
    return sum(getattr(leaf, "nbytes", 0) or 0 for leaf in _leaves(arrays))


def _is_array_like(x: Any) -> bool:
    leaves = _leaves(x)
    return bool(leaves) and all(
        hasattr(leaf, "shape") and hasattr(leaf, "__getitem__") for leaf in leaves
    )


def _cut_arrays(arguments: dict[str, Any]) -> Batch:
    batch_size = arguments.get("batch_size")
    if batch_size is None:
        raise UsageError(
            "batch_size is missing. Received: arrays and no batch_size. Give the batch size that "
            "you want to train with, such as batch_size=256: memfit keeps it."
        )
    batch_size = check_whole_number("batch_size", batch_size)
    parts = (arguments.get("x"), arguments.get("y"), arguments.get("sample_weight"))
    x, y, sample_weight = (_take(part, batch_size) for part in parts)
    return x, y, sample_weight


def _take(part: Any, num_samples: int) -> Any:
    import keras

    return keras.tree.map_structure(
        lambda leaf: (leaf.iloc if hasattr(leaf, "iloc") else leaf)[:num_samples],
        part,
        none_is_leaf=False,
    )


def _make_from_specs(dataset: Any) -> Batch:
    """Zeros of the shapes that a `tf.data` pipeline gives."""
    import keras
    import numpy as np

    batch_size = find_batch_size(dataset)

    def make(spec: Any) -> Any:
        shape = list(spec.shape)
        if not shape or None in shape[1:] or (shape[0] is None and batch_size is None):
            raise UsageError(
                f"Cannot find the shapes of a batch of this dataset. Received: {spec}. "
                "Batch it with .batch(size) to known shapes, or give arrays."
            )
        return np.zeros([batch_size or shape[0], *shape[1:]], numpy_dtype(spec))

    return _unpack(keras.tree.map_structure(make, element_spec(dataset)))


def _continue(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    """Gives what was read already and then the rest; a batch may not outgrow the first."""
    most = count_samples(_unpack(first))
    yield first
    for item in rest:
        number = count_samples(_unpack(item))
        if number > most:
            raise UsageError(
                f"The generator gave a batch of {number} samples; the first had {most}, and the "
                "budget was planned for that. Give the largest batch first, or batches of one size."
            )
        yield item


def _unpack(item: Any) -> Batch:
    import keras

    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(item)
    return x, y, sample_weight


def _leaves(part: Any) -> list[Any]:
    import keras

    return [leaf for leaf in keras.tree.flatten(part) if leaf is not None]
