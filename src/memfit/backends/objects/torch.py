"""PyTorch: tensors, views, and the graphs behind tensors."""

import math
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from memfit.backends.objects import VIEW_FACTOR, LiveObject, kind_by_class
from memfit.slots import class_name, is_a

_KINDS = {
    "Optimizer": "optimizer",
    "Module": "model",
    "DataLoader": "dataset",
    "_BaseDataLoaderIter": "iterator",
    "SummaryWriter": "writer",
}
# The record of what was not computed: a parameter, or an input that asks for its gradient.
_PARAMETER = "AccumulateGrad"
# Steps that show the memory of another tensor; torch calls them tensor views.
_VIEWS = frozenset(
    {"Alias", "AsStrided", "Detach", "Diagonal", "Expand", "Movedim", "Permute", "Select"}
    | {"Slice", "Split", "SplitWithSizes", "Squeeze", "T", "Transpose", "Unbind", "Unfold"}
    | {"Unsqueeze", "UnsafeView", "View", "ReshapeAlias"}
)
_MOST_NODES = 20_000
_MOST_NODES_OPENED = 200


def describe(value: Any) -> LiveObject | None:
    """Returns what an object of torch is; a tensor that keeps its graph is a `"graph"`."""
    torch: Any = sys.modules["torch"]
    if not is_a(value, torch.Tensor):
        name = kind_by_class(_KINDS, value)
        return LiveObject(name, 0, id(value), class_name(type(value))) if name else None
    with torch._C.DisableTorchFunctionSubclass():  # a subclass is not asked about itself
        return _describe_tensor(torch, value)


def _describe_tensor(torch: Any, value: Any) -> LiveObject:
    kind = "graph" if value.grad_fn is not None else "tensor"
    if value.device.type != "cpu" or value.layout != torch.strided:
        return LiveObject(kind, 0, id(value), f"{value.dtype} on {value.device}")
    storage = value.untyped_storage()
    own_bytes = value.numel() * value.element_size()
    if kind == "tensor" and storage.nbytes() >= VIEW_FACTOR * max(own_bytes, 1):
        kind = "torch view"
    text = f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    return LiveObject(kind, storage.nbytes(), storage.data_ptr(), text)


def graph_length(value: Any) -> int:
    """Returns how many steps the record behind a tensor has, up to a bound."""
    return sum(1 for _ in _nodes([value], _MOST_NODES))


def graph_size_bytes(values: Sequence[Any]) -> int:
    """Returns about the bytes that these records keep together: what their steps gave.

    The tensors that a step saved are not looked at. Reading them runs the hooks that unpack them,
    and those may compute a part of the model again.
    """
    opened = list(_nodes(values, _MOST_NODES_OPENED))
    given_bytes = sum(_given_bytes(node) for node in opened)
    # Where there are more steps than were opened, the others are assumed to be like these.
    length = sum(1 for _ in _nodes(values, _MOST_NODES))
    return round(given_bytes * length / max(len(opened), 1))


def _nodes(values: Sequence[Any], most: int) -> Iterator[Any]:
    pending = deque(value.grad_fn for value in values if value.grad_fn is not None)
    seen: set[Any] = set()
    while pending and len(seen) < most:
        node = pending.popleft()
        if node in seen:
            continue
        seen.add(node)
        yield node
        pending.extend(inner for inner, _ in node.next_functions if inner is not None)


def _given_bytes(node: Any) -> int:
    """The bytes of what a step gave, by the record of it; none for a view or a parameter."""
    name = class_name(type(node))
    if name == _PARAMETER or name.rstrip("0123456789").removesuffix("Backward") in _VIEWS:
        return 0
    return sum(math.prod(one.shape) * one.dtype.itemsize for one in node._input_metadata)
