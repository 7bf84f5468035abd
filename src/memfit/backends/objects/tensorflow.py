"""TensorFlow: tensors, variables, functions and datasets, by the names of their classes."""

from collections.abc import Sequence
from typing import Any

from memfit.backends.objects import LiveObject, kind_by_class
from memfit.slots import class_name

KINDS = {
    "EagerTensor": "tensor",
    "BaseResourceVariable": "variable",
    "GradientTape": "tape",
    "Function": "function",
    "ConcreteFunction": "function",
    "DatasetV2": "dataset",
    "OwnedIterator": "iterator",
    "SummaryWriter": "writer",
}


def describe(value: Any) -> LiveObject | None:
    """Returns what an object of TensorFlow is. Reads shapes only: nothing is copied."""
    kind = kind_by_class(KINDS, value)
    if kind not in ("tensor", "variable"):
        return LiveObject(kind, 0, id(value), class_name(type(value))) if kind else None
    # Of a variable that may change its shape the size is not known without a step of its own.
    size_bytes = (value.shape.num_elements() or 0) * value.dtype.size
    return LiveObject(kind, size_bytes, id(value), f"{value.dtype.name} {tuple(value.shape)}")


def graph_length(value: Any) -> int:
    """Returns 0: a tensor keeps no record of how it was computed."""
    return 0


def graph_size_bytes(values: Sequence[Any]) -> int:
    """Returns 0, for the same reason."""
    return 0
