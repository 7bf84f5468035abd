"""A census of all objects that the garbage collector knows: counts, bytes, and new beginnings.

The user's own objects that no name leads to (held by a thread, a data pipeline, a framework)
are returned too, so that a walk can begin at them.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from types import FunctionType, GeneratorType
from typing import Any

from memfit.backends.observe import PACKAGES, package_of
from memfit.heap.describe import describe
from memfit.heap.tracked import count_types, pick
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
        sizes: Bytes by kind, where these can be told.
        roots: The user's own objects, generators and functions with closures.
    """

    numbers: dict[str, int]
    sizes: dict[str, int]
    roots: Sequence[Any]


def take_census() -> Census:
    """Counts all objects. Takes tens of milliseconds for each 100,000 of them."""
    types = count_types()
    roots = pick({GeneratorType, *(kind for kind in types if is_user_class(kind))})
    roots += [one for one in pick({FunctionType}) if one.__closure__ is not None]
    numbers: Counter[str] = Counter(objects=types.total())
    sizes: Counter[str] = Counter()
    for one in pick({kind for kind in types if _is_of_interest(kind)})[-_MOST_DESCRIBED:]:
        known = describe(one)
        if known is not None:
            numbers[known.kind] += 1
            sizes[known.kind] += known.size_bytes
    return Census(dict(numbers), dict(sizes), [one for one in roots if _is_own(one)][-_MOST_ROOTS:])


def _is_of_interest(kind: type) -> bool:
    return package_of(kind) in _PACKAGES and not issubclass(kind, type)


def _is_own(one: Any) -> bool:
    kind = type(one)
    if kind is FunctionType:
        return is_user_file(one.__code__.co_filename)
    return kind is not GeneratorType or is_user_file(one.gi_code.co_filename)
