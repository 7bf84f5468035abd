"""Where to cut a model into blocks for recomputation, so that little is kept between them."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memfit.fitting.graph.choose_blocks import Block

# Blocks that hold at most one of these parts of the activations are tried.
_PARTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


@dataclass(frozen=True, slots=True)
class Output:
    """A tensor that a piece makes.

    Attributes:
        size_bytes: Its size.
        last_reader: The place of the last piece that reads it; after the last for the model's own
            outputs.
    """

    size_bytes: int
    last_reader: int


@dataclass(frozen=True, slots=True)
class Piece:
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
    """A block and its pieces.

    Attributes:
        first: The place of its first piece.
        end: The place after its last piece.
        block: Its sizes and cost.
    """

    first: int
    end: int
    block: Block


def cut_into_blocks(pieces: Sequence[Piece]) -> tuple[Cut, ...]:
    """Returns the pieces in blocks, so that recomputing every block has the lowest peak.

    Few long blocks keep little but need much while one of them is recomputed; many short blocks
    the other way round. Blocks of several lengths are tried. They end where few bytes are read
    later on, such as between two residual blocks.

    Example:
    >>> pieces = [Piece(f"dense_{n}", 100, (Output(100, n + 1),), 1) for n in range(16)]
    >>> [cut.end for cut in cut_into_blocks(pieces)]
    [4, 8, 12, 16]
    """
    total_bytes = sum(piece.activation_bytes for piece in pieces)
    tried = [_cut(pieces, -(-total_bytes // parts)) for parts in _PARTS if parts <= len(pieces)]
    return min(tried, key=_rank, default=())


def _rank(cuts: tuple[Cut, ...]) -> tuple[int, int]:
    kept = sum(cut.block.boundary_bytes for cut in cuts)
    return kept + max(cut.block.activation_bytes for cut in cuts), len(cuts)


def _cut(pieces: Sequence[Piece], most_bytes: int) -> tuple[Cut, ...]:
    """Returns blocks of at most `most_bytes`, unless a piece has more, that keep the least."""
    # The best way to each place: kept bytes, blocks, and where the last of them begins.
    best: dict[int, tuple[int, int, int]] = {0: (0, 0, 0)}
    for first in range(len(pieces)):
        kept_bytes, count, _ = best[first]
        for end, block in _blocks_from(pieces, first, most_bytes):
            way = (kept_bytes + block.boundary_bytes, count + 1, first)
            best[end] = min(best.get(end, way), way)
    ends = [len(pieces)]
    while ends[-1]:
        ends.append(best[ends[-1]][2])
    return tuple(
        Cut(first, end, next(block for at, block in _blocks_from(pieces, first, None) if at == end))
        for first, end in itertools.pairwise(reversed(ends))
    )


def _blocks_from(
    pieces: Sequence[Piece], first: int, most_bytes: int | None
) -> Iterator[tuple[int, Block]]:
    """Yields each block that begins at `first`, with its end; at least the shortest."""
    activation_bytes = cost = 0
    can_repeat = True
    read_later: list[Output] = []
    for place in range(first, len(pieces)):
        piece = pieces[place]
        activation_bytes += piece.activation_bytes
        cost += piece.cost
        can_repeat = can_repeat and piece.can_repeat
        if place > first and most_bytes is not None and activation_bytes > most_bytes:
            return
        read_later = [one for one in (*read_later, *piece.outputs) if one.last_reader > place]
        kept_bytes = sum(one.size_bytes for one in read_later)
        boundary_bytes = min(kept_bytes, activation_bytes) if can_repeat else activation_bytes
        name = piece.name if place == first else f"{pieces[first].name}..{piece.name}"
        yield place + 1, Block(name, activation_bytes, boundary_bytes, cost)
