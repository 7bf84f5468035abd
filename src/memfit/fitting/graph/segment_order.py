"""Where to cut a model for BatchNormalization of whole batches: what runs before, what after."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one layer.

    Attributes:
        reads: Names of the tensors that it reads.
        makes: Names of the tensors that it makes.
        needs_batch: Whether it needs all samples of what it reads before it can begin.
    """

    reads: tuple[int, ...]
    makes: tuple[int, ...]
    needs_batch: bool = False


def assign_segments(calls: Sequence[Call]) -> tuple[int, ...]:
    """Returns the segment of each call.

    Segments run one after another, each for all samples before the next begins. There are as few
    as possible. Within that a call is as late as those who read it allow, so that what waits
    between two segments is what went into a branch, which others need too, and not what it made.

    Args:
        calls: In an order in which they can run.

    Example:
    >>> dense, norm, head = Call((0,), (1,)), Call((1,), (2,), needs_batch=True), Call((2,), (3,))
    >>> assign_segments([dense, norm, head])
    (0, 1, 1)
    """
    earliest = _find_earliest(calls)
    latest = list(earliest)
    readers: dict[int, list[int]] = {}
    for place, call in enumerate(calls):
        for name in call.reads:
            readers.setdefault(name, []).append(place)
    for place in reversed(range(len(calls))):
        limits = [
            latest[reader] - calls[reader].needs_batch
            for name in calls[place].makes
            for reader in readers.get(name, ())
        ]
        latest[place] = min(limits, default=earliest[place])
    return tuple(latest)


def _find_earliest(calls: Sequence[Call]) -> list[int]:
    made_in: dict[int, int] = {}
    earliest = []
    for call in calls:
        segment = max((made_in.get(name, 0) for name in call.reads), default=0) + call.needs_batch
        earliest.append(segment)
        made_in |= dict.fromkeys(call.makes, segment)
    return earliest
