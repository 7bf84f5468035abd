"""What a dataset of a framework says of itself: a `tf.data.Dataset`, a torch `DataLoader`.

They are recognised by their attributes and class names, so nothing is imported.
"""

from typing import Any


def is_tf_dataset(value: Any) -> bool:
    """Returns whether `value` is a `tf.data.Dataset`, or is read like one."""
    return hasattr(value, "element_spec")


def element_spec(dataset: Any) -> Any:
    """Returns a structure of specs with shape and dtype, for one element of a `tf.data.Dataset`."""
    return dataset.element_spec


def numpy_dtype(spec: Any) -> Any:
    """Returns the NumPy dtype of a spec."""
    return spec.dtype.as_numpy_dtype


def find_batch_size(dataset: Any) -> int | None:
    """Returns the batch size that a stage of a `tf.data` pipeline was made with."""
    while dataset is not None:
        size = getattr(dataset, "_batch_size", None)
        if size is not None:
            return int(size)
        dataset = getattr(dataset, "_input_dataset", None)
    return None


def is_torch_loader(value: Any) -> bool:
    """Returns whether `value` is a torch `DataLoader`, by its class."""
    return any(one.__name__ == "DataLoader" for one in type(value).__mro__)


def collates_rows(value: Any) -> bool:
    """Returns whether `value` makes batches of the rows of a dataset, as a `DataLoader` does."""
    return hasattr(value, "collate_fn") and hasattr(value, "dataset")


def collate_first(loader: Any) -> Any:
    """Returns the first batch of a `DataLoader` in order, without its workers."""
    rows = range(min(loader.batch_size or 1, len(loader.dataset)))
    return loader.collate_fn([loader.dataset[row] for row in rows])
