"""A census of all objects that the garbage collector tracks: counts, bytes, and roots for a walk.

The user's own objects that no name leads to (held by a thread, a data pipeline, a framework)
are returned too, so that a walk can begin at them.

No tuple is referred to on the way: Python builds a tuple in place and fails if somebody else refers
to it meanwhile. One reference to each tuple, as `gc.get_objects()` gives, ends `tuple(generator)`
in another thread with a `SystemError`. So the list of all objects lives within one call of C code,
during which no other thread runs, and what comes out of it has no tuples.
"""

import gc
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from types import FunctionType, GeneratorType
from typing import Any

from memfit.backends.objects import PACKAGES, package_of
from memfit.heap.describe import describe
from memfit.user_code.frames import is_user_class, is_user_file

_MOST_ROOTS = 2000
# Each is described for its bytes; the newest are enough.
_MOST_DESCRIBED = 5000
_PACKAGES = (*PACKAGES, "keras", "matplotlib")


@dataclass(frozen=True, slots=True)
class Census:
    """What is alive.

    Attributes:
        numbers: Things by kind, such as `"tensor"` or `"model"`, and `"objects"` in all.
        sizes: Bytes by kind, where they can be measured.
        roots: The user's own objects, generators and functions with closures.
    """

    numbers: dict[str, int]
    sizes: dict[str, int]
    roots: Sequence[Any]


@dataclass(frozen=True, slots=True)
class TypeCount:
    """How many objects of a type there are."""

    kind: type
    number: int


def take_census() -> Census:
    """Counts all objects. Takes tens of milliseconds for each 100,000 of them."""
    counts = count_types().values()
    types = [one.kind for one in counts]
    roots = pick_objects([GeneratorType, *(kind for kind in types if is_user_class(kind))])
    roots += [one for one in pick_objects([FunctionType]) if one.__closure__ is not None]
    numbers: Counter[str] = Counter(objects=sum(one.number for one in counts))
    sizes: Counter[str] = Counter()
    for one in pick_objects([kind for kind in types if _is_of_interest(kind)])[-_MOST_DESCRIBED:]:
        known = describe(one)
        if known is not None:
            numbers[known.kind] += 1
            sizes[known.kind] += known.size_bytes
    return Census(dict(numbers), dict(sizes), [one for one in roots if _is_own(one)][-_MOST_ROOTS:])


def count_types() -> dict[int, TypeCount]:
    """Returns how many objects of each type there are, by the `id` of the type.

    Not by the type itself: a metaclass of the user's may have an `__eq__` or `__hash__`.
    """
    kinds = list(map(type, _objects(None)))
    by_id = dict(zip(map(id, kinds), kinds, strict=True))
    numbers = Counter(map(id, kinds))
    return {key: TypeCount(kind, numbers[key]) for key, kind in by_id.items()}


def pick_objects(kinds: Iterable[type]) -> list[Any]:
    """Returns the objects of these types, but no tuples. The collector should be paused."""
    ids = {id(kind) for kind in kinds} - {id(tuple)}
    return [one for part in range(3) for one in _pick(ids, part) if id(type(one)) in ids]


def _is_of_interest(kind: type) -> bool:
    return package_of(kind) in _PACKAGES and not issubclass(kind, type)


def _is_own(one: Any) -> bool:
    kind = type(one)
    if kind is FunctionType:
        return is_user_file(one.__code__.co_filename)
    return kind is not GeneratorType or is_user_file(one.gi_code.co_filename)


def _pick(ids: Set[int], generation: int) -> list[Any]:
    """Lists the objects twice, for themselves and for their types.

    The second list may have some more at its end. It must be used up, or all of it lives on.
    """
    some_more = itertools.repeat(None, 1000)
    are_wanted = map(ids.__contains__, map(id, map(type, _objects(generation))))
    return list(itertools.compress(itertools.chain(_objects(generation), some_more), are_wanted))


def _objects(generation: int | None) -> Iterator[Any]:
    """The objects as they are when the first of them is read."""
    return itertools.chain.from_iterable(map(gc.get_objects, (generation,)))
