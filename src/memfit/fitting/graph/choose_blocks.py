"""Which blocks of a model to recompute in the backward pass, so that enough memory is saved."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Sizes are counted in this many units, so that many different blocks take a moment, not minutes.
_MOST_UNITS = 4096


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a model that is recomputed as a whole or not at all.

    Attributes:
        name: Its first and last layer.
        activation_bytes: What it keeps for its backward pass, its outputs included.
        boundary_bytes: What is kept of it when it is recomputed: the outputs that others read.
        cost: Its forward work, in operations.
    """

    name: str
    activation_bytes: int
    boundary_bytes: int
    cost: int


@dataclass(frozen=True, slots=True)
class Choice:
    """Blocks to recompute.

    Attributes:
        chosen: Their places in the model, in order.
        saved_bytes: How much lower the peak is.
        cost: Their forward work, which is done twice.
        is_enough: Whether this saves what was asked. If not, this is the most that can be saved.
    """

    chosen: tuple[int, ...]
    saved_bytes: int
    cost: int
    is_enough: bool


def peak_bytes(blocks: Sequence[Block], chosen: Iterable[int] = ()) -> int:
    """Returns the most that activations take while the blocks in `chosen` are recomputed.

    The backward pass goes from the last block to the first. While it is in one block, the
    activations of that block are there, recomputed or not, and of those before it what they keep.

    Example:
    >>> blocks = [Block("a", 100, 10, 1), Block("b", 100, 10, 1), Block("c", 100, 10, 1)]
    >>> peak_bytes(blocks), peak_bytes(blocks, [0, 1])
    (300, 120)
    """
    recomputed = frozenset(chosen)
    peak = kept = 0
    for place, block in enumerate(blocks):
        peak = max(peak, kept + block.activation_bytes)
        kept += block.boundary_bytes if place in recomputed else block.activation_bytes
    return peak


def choose_all(blocks: Sequence[Block]) -> Choice:
    """Returns every block that saves something.

    The last block saves nothing: its backward pass begins where its forward pass ends.
    """
    return _choice(blocks, _helpful(blocks), bytes_to_save=0)


def choose_blocks(blocks: Sequence[Block], bytes_to_save: int) -> Choice:
    """Returns the cheapest blocks whose recomputation lowers the peak by `bytes_to_save`.

    A larger need never costs less. Where the need cannot be met, the choice is the one that saves
    the most, and says so.

    Args:
        blocks: The blocks of a model, in the order of the forward pass.
        bytes_to_save: How much lower the peak shall be.

    Example:
    >>> blocks = [Block("a", 100, 10, 5), Block("b", 100, 10, 1), Block("c", 100, 10, 1)]
    >>> choose_blocks(blocks, 80).chosen
    (1,)
    """
    chosen = _cheapest(blocks, peak_bytes(blocks) - bytes_to_save)
    return _choice(blocks, _helpful(blocks) if chosen is None else chosen, bytes_to_save)


def _helpful(blocks: Sequence[Block]) -> tuple[int, ...]:
    return tuple(
        place
        for place, block in enumerate(blocks[:-1])
        if block.boundary_bytes < block.activation_bytes
    )


def _choice(blocks: Sequence[Block], chosen: tuple[int, ...], bytes_to_save: int) -> Choice:
    saved_bytes = peak_bytes(blocks) - peak_bytes(blocks, chosen)
    cost = sum(blocks[place].cost for place in chosen)
    return Choice(chosen, saved_bytes, cost, saved_bytes >= bytes_to_save)


def _cheapest(blocks: Sequence[Block], limit_bytes: int) -> tuple[int, ...] | None:
    """Returns the cheapest blocks with a peak of at most `limit_bytes`; `None` if none are found.

    Goes through the blocks and remembers, for each amount kept so far, the cheapest way to it.
    Sizes are rounded up, so a way that is found is good.
    """
    unit_bytes = max(1, -(-peak_bytes(blocks) // _MOST_UNITS))
    helpful = frozenset(_helpful(blocks))
    ways: list[tuple[int, int, tuple[int, ...]]] = [(0, 0, ())]  # kept units, cost, chosen
    for place, block in enumerate(blocks):
        whole = -(-block.activation_bytes // unit_bytes)
        boundary = -(-block.boundary_bytes // unit_bytes)
        fitting = [way for way in ways if (way[0] + whole) * unit_bytes <= limit_bytes]
        longer = [(kept + whole, cost, chosen) for kept, cost, chosen in fitting]
        if place in helpful:
            longer += [
                (kept + boundary, cost + block.cost, (*chosen, place))
                for kept, cost, chosen in fitting
            ]
        ways = _without_worse(longer)
    return min(ways, key=lambda way: way[1])[2] if ways else None


def _without_worse(
    ways: list[tuple[int, int, tuple[int, ...]]],
) -> list[tuple[int, int, tuple[int, ...]]]:
    """Drops each way that keeps as much as another and costs as much."""
    good: list[tuple[int, int, tuple[int, ...]]] = []
    for way in sorted(ways):
        if not good or way[1] < good[-1][1]:
            good.append(way)
    return good
