"""Where to cut a model into blocks for recomputation, so that little is kept between them."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memfit.fitting.graph.choose_blocks import Block

# Blocks that hold at most one of these parts of the activations are tried.
_PARTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


@dataclass(frozen=True, slots=True)
class Output:
    """A tensor that a node makes.

    Attributes:
        size_bytes: Its size.
        last_reader: The place of the last node that reads it; after the last for the model's own
            outputs.
    """

    size_bytes: int
    last_reader: int


@dataclass(frozen=True, slots=True)
class GraphNode:
    """The smallest part of a model: one call of one layer.

    Attributes:
        name: The layer's name.
        activation_bytes: What it keeps for its backward pass, its outputs included.
        outputs: The tensors that it makes.
        cost: Its forward work, in operations.
        can_repeat: Whether a second run of it gives the same and changes nothing.
    """

    name: str
    activation_bytes: int
    outputs: tuple[Output, ...]
    cost: int
    can_repeat: bool = True


@dataclass(frozen=True, slots=True)
class Cut:
    """A block and its nodes.

    Attributes:
        first: The place of its first node.
        end: The place after its last node.
        block: Its sizes and cost.
    """

    first: int
    end: int
    block: Block


def cut_into_blocks(graph_nodes: Sequence[GraphNode]) -> tuple[Cut, ...]:
    """Returns the nodes in blocks, so that recomputing every block has the lowest peak.

    Few long blocks keep little but need much while one of them is recomputed; many short blocks
    the other way round. Blocks of several lengths are tried. They end where few bytes are read
    later on, such as between two residual blocks.

    Example:
    >>> nodes = [GraphNode(f"dense_{n}", 100, (Output(100, n + 1),), 1) for n in range(16)]
    >>> [cut.end for cut in cut_into_blocks(nodes)]
    [4, 8, 12, 16]
    """
    total_bytes = sum(node.activation_bytes for node in graph_nodes)
    tried = [
        _cut(graph_nodes, -(-total_bytes // parts)) for parts in _PARTS if parts <= len(graph_nodes)
    ]
    return min(tried, key=_rank, default=())


def _rank(cuts: tuple[Cut, ...]) -> tuple[int, int]:
    kept = sum(cut.block.boundary_bytes for cut in cuts)
    return kept + max(cut.block.activation_bytes for cut in cuts), len(cuts)


def _cut(graph_nodes: Sequence[GraphNode], most_bytes: int) -> tuple[Cut, ...]:
    """Returns blocks of at most `most_bytes`, unless a node has more, that keep the least."""
    # The best way to each place: kept bytes, blocks, and where the last of them begins.
    best: dict[int, tuple[int, int, int]] = {0: (0, 0, 0)}
    for first in range(len(graph_nodes)):
        kept_bytes, count, _ = best[first]
        for end, block in _blocks_from(graph_nodes, first, most_bytes):
            way = (kept_bytes + block.boundary_bytes, count + 1, first)
            best[end] = min(best.get(end, way), way)
    ends = [len(graph_nodes)]
    while ends[-1]:
        ends.append(best[ends[-1]][2])
    return tuple(
        Cut(
            first,
            end,
            next(block for at, block in _blocks_from(graph_nodes, first, None) if at == end),
        )
        for first, end in itertools.pairwise(reversed(ends))
    )


def _blocks_from(
    graph_nodes: Sequence[GraphNode], first: int, most_bytes: int | None
) -> Iterator[tuple[int, Block]]:
    """Yields each block that begins at `first`, with its end; at least the shortest."""
    activation_bytes = cost = 0
    can_repeat = True
    read_later: list[Output] = []
    for place in range(first, len(graph_nodes)):
        node = graph_nodes[place]
        activation_bytes += node.activation_bytes
        cost += node.cost
        can_repeat = can_repeat and node.can_repeat
        if place > first and most_bytes is not None and activation_bytes > most_bytes:
            return
        read_later = [one for one in (*read_later, *node.outputs) if one.last_reader > place]
        kept_bytes = sum(one.size_bytes for one in read_later)
        boundary_bytes = min(kept_bytes, activation_bytes) if can_repeat else activation_bytes
        name = node.name if place == first else f"{graph_nodes[first].name}..{node.name}"
        yield place + 1, Block(name, activation_bytes, boundary_bytes, cost)
