"""All objects that the garbage collector knows, without a tuple in anybody's way.

Python builds a tuple in place and fails if somebody else refers to it meanwhile: one reference to
each tuple, as `gc.get_objects()` gives, ends `tuple(generator)` in another thread with a
`SystemError`. So here the list of all objects lives within one call of C code, during which no
other thread runs, and what comes out of it has no tuples.
"""

import gc
import itertools
from collections import Counter
from collections.abc import Iterator, Set
from typing import Any


def count_types() -> Counter[type]:
    """Returns how many objects of each type there are."""
    return Counter(map(type, _objects(None)))


def pick(kinds: Set[type]) -> list[Any]:
    """Returns the objects of these types, but no tuples. The collector should be paused."""
    kinds = kinds - {tuple}
    return [one for part in range(3) for one in _pick(kinds, part) if type(one) in kinds]


def _pick(kinds: Set[type], generation: int) -> list[Any]:
    """Lists the objects twice, for themselves and for their types.

    The second list may have some more at its end. It must be used up, or all of it lives on.
    """
    some_more = itertools.repeat(None, 1000)
    are_wanted = map(kinds.__contains__, map(type, _objects(generation)))
    return list(itertools.compress(itertools.chain(_objects(generation), some_more), are_wanted))


def _objects(generation: int | None) -> Iterator[Any]:
    """The objects as they are when somebody asks for the first of them."""
    return itertools.chain.from_iterable(map(gc.get_objects, (generation,)))
