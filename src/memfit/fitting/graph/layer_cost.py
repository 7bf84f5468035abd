"""What one call of a layer keeps for the backward pass, and how much it computes: estimates.

Both come from symbolic shapes. A layer that is not known here counts with its outputs and weights.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memfit.keras_private.graph import inner_graph, ordered_nodes

# Stands for a length that is known only when data come, such as that of a sentence.
_UNKNOWN_LENGTH = 128
# Give another view of the same memory, or need nothing again in the backward pass.
_KEEP_NOTHING = frozenset({"Flatten", "InputLayer", "Reshape", "Identity"})
# Activations whose gradient needs what went in, besides what came out.
_KEEP_INPUT = frozenset({"gelu", "silu", "swish", "mish", "softplus", "hard_silu", "exponential"})
_NORMALIZE = frozenset(
    {"BatchNormalization", "GroupNormalization", "LayerNormalization", "RMSNormalization"}
)
_ATTEND = frozenset({"GroupedQueryAttention", "MultiHeadAttention"})
_RECURRENT_GATES = {"GRU": 3, "LSTM": 4, "SimpleRNN": 1}


@dataclass(frozen=True, slots=True)
class LayerWork:
    """What one call of a layer takes.

    Attributes:
        kept_bytes: What it keeps for the backward pass, its outputs included.
        operations: Multiplications with an addition, and elements made.
    """

    kept_bytes: int
    operations: int


def estimate_work(node: Any, batch_size: int) -> LayerWork:
    """Returns what the call of a layer, a node of a Keras graph, takes for a batch."""
    layer = node.operation
    inner = inner_graph(layer)
    if inner is not None:
        parts = [estimate_work(one, batch_size) for one in ordered_nodes(inner)]
        return LayerWork(sum(one.kept_bytes for one in parts), sum(one.operations for one in parts))
    out_bytes = sum(tensor_bytes(one, batch_size) for one in node.outputs)
    elements = sum(count_elements(one.shape, batch_size) for one in node.outputs)
    kind = type(layer).__name__
    if kind in _KEEP_NOTHING:
        return LayerWork(0, elements)
    if kind in _ATTEND:
        return _estimate_attention(node, batch_size, out_bytes)
    if kind in _RECURRENT_GATES:
        return _estimate_recurrence(node, batch_size, _RECURRENT_GATES[kind])
    return LayerWork(
        round(out_bytes * _kept_outputs(layer)),
        elements + _count_products(node, batch_size, elements),
    )


def tensor_bytes(tensor: Any, batch_size: int) -> int:
    """Returns the bytes of a symbolic tensor for a batch."""
    bits = "".join(character for character in str(tensor.dtype) if character.isdigit())
    item_bytes = 1 if tensor.dtype == "bool" else max(1, int(bits[:2] or 32) // 8)
    return count_elements(tensor.shape, batch_size) * item_bytes


def count_elements(shape: Sequence[int | None], batch_size: int) -> int:
    """Returns the elements of a symbolic shape whose first dimension may be the batch."""
    lengths = [batch_size if size is None else size for size in shape[:1]]
    lengths += [_UNKNOWN_LENGTH if size is None else size for size in shape[1:]]
    return math.prod(lengths)


def _kept_outputs(layer: Any) -> float:
    """Returns how many times the size of its outputs a layer keeps."""
    kind = type(layer).__name__
    if kind in _NORMALIZE:
        return 2.0
    if kind.endswith("Dropout"):
        return 1.25 if getattr(layer, "rate", 0) else 0.0
    activation = getattr(getattr(layer, "activation", None), "__name__", None)
    return 2.0 if activation in _KEEP_INPUT else 1.0


def _count_products(node: Any, batch_size: int, elements: int) -> int:
    """Returns the multiplications of a layer with its kernels: each position times each weight."""
    layer = node.operation
    kernels: list[int] = [
        math.prod(one.shape)
        for one in getattr(layer, "trainable_weights", ())
        if len(one.shape) > 1
    ]
    if not kernels or type(layer).__name__ == "Embedding":
        return 0
    channels = getattr(layer, "units", None) or getattr(layer, "filters", None)
    if isinstance(channels, int) and len(kernels) == 1:
        return elements // channels * kernels[0]
    positions = sum(count_elements(one.shape[:-1], batch_size) for one in node.input_tensors[:1])
    return positions * sum(kernels)


def _estimate_attention(node: Any, batch_size: int, out_bytes: int) -> LayerWork:
    layer, query = node.operation, node.input_tensors[0]
    others = node.input_tensors[1:2] or (query,)
    tokens = count_elements(query.shape[:-1], batch_size)
    read = count_elements(others[0].shape[:-1], batch_size)
    length = max(1, read // batch_size)
    heads: int = getattr(layer, "num_heads", None) or layer.num_query_heads
    head_width: int = getattr(layer, "key_dim", None) or layer.head_dim
    width = heads * head_width
    item_bytes = out_bytes / max(1, sum(count_elements(t.shape, batch_size) for t in node.outputs))
    scores = tokens * length * heads
    kept = 3 * tokens * width + 2 * read * width + 2 * scores
    weights = sum(math.prod(one.shape) for one in layer.trainable_weights)
    return LayerWork(
        round(kept * item_bytes) + out_bytes, tokens * weights + 2 * tokens * length * width
    )


def _estimate_recurrence(node: Any, batch_size: int, gates: int) -> LayerWork:
    layer, sequence = node.operation, node.input_tensors[0]
    steps = count_elements(sequence.shape[:-1], batch_size)
    item_bytes = max(
        1, tensor_bytes(node.outputs[0], 1) // count_elements(node.outputs[0].shape, 1)
    )
    weights = sum(math.prod(one.shape) for one in layer.trainable_weights)
    return LayerWork(steps * layer.units * (gates + 2) * item_bytes, steps * weights)
