"""PyTorch: tensors, views, and the graphs behind tensors."""

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from memfit.backends.objects import VIEW_FACTOR, LiveObject, kind_by_class

_KINDS = {
    "Optimizer": "optimizer",
    "Module": "model",
    "DataLoader": "dataset",
    "_BaseDataLoaderIter": "iterator",
    "SummaryWriter": "writer",
}


_MOST_NODES = 20_000


_MOST_NODES_OPENED = 200


def describe(value: Any) -> LiveObject | None:
    """Returns what an object of torch is; a tensor that keeps its graph is a `"graph"`."""
    torch: Any = sys.modules["torch"]
    if not isinstance(value, torch.Tensor):
        name = kind_by_class(_KINDS, value)
        return LiveObject(name, 0, id(value), type(value).__name__) if name else None
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
    """Returns the bytes that these records keep together, apart from parameters."""
    torch: Any = sys.modules["torch"]
    sizes: dict[int, int] = {}
    opened = list(_nodes(values, _MOST_NODES_OPENED))
    for node in opened:
        for tensor in _saved(node):
            if isinstance(tensor, torch.Tensor) and not isinstance(tensor, torch.nn.Parameter):
                storage = tensor.untyped_storage()
                sizes[storage.data_ptr()] = storage.nbytes()
    # Where there are more steps than were opened, the others are assumed to be like these.
    length = sum(1 for _ in _nodes(values, _MOST_NODES))
    return round(sum(sizes.values()) * length / max(len(opened), 1))


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


def _saved(node: Any) -> Iterator[Any]:
    for name in dir(node):
        if name.startswith("_saved_"):
            try:
                yield getattr(node, name)
            except RuntimeError:  # given back after `backward`
                return
