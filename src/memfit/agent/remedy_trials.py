"""Tries what could give memory back, and measures what it gives back."""

import gc
import os
import time

from memfit.heap.census import TypeCount, count_types
from memfit.measure.malloc import read_allocator, trim
from memfit.measure.process import read_process
from memfit.record.evidence import RemedyTrial
from memfit.slots import class_name
from memfit.user_code.frames import is_user_class

_MOST_EXAMPLES = 6
# The functions themselves, before the script's calls of them are counted.
_collect = gc.collect


def try_trim() -> RemedyTrial | None:
    """Has malloc give back what it keeps; `None` where it cannot."""
    begun_s = time.perf_counter()
    before_bytes = _held_bytes()
    if not trim():
        return None
    return RemedyTrial(
        time.monotonic(), "trim", before_bytes, _held_bytes(), time.perf_counter() - begun_s
    )


def try_collect() -> RemedyTrial:
    """Runs the garbage collector once. What it freed shows in malloc, which may keep it."""
    begun_s = time.perf_counter()
    before_bytes, types_before = _in_use_bytes(), count_types()
    num_collected = _collect()
    after_bytes = _in_use_bytes()
    freed = _find_freed(types_before, count_types())
    return RemedyTrial(
        t_s=time.monotonic(),
        remedy="collect",
        before_bytes=before_bytes,
        after_bytes=after_bytes,
        cost_s=time.perf_counter() - begun_s,
        objects=num_collected,
        examples={class_name(kind): number for kind, number in freed[:_MOST_EXAMPLES]},
    )


def _find_freed(
    before: dict[int, TypeCount], after: dict[int, TypeCount]
) -> list[tuple[type, int]]:
    """The types of which there are fewer: the user's own, which a script shows, first."""
    freed = [
        (one.kind, one.number - (after[key].number if key in after else 0))
        for key, one in before.items()
    ]
    fewer = [one for one in freed if one[1] > 0]
    return sorted(fewer, key=lambda one: (not is_user_class(one[0]), -one[1]))


def _in_use_bytes() -> int:
    memory = read_allocator()
    return memory.in_use_bytes if memory is not None else _held_bytes()


def _held_bytes() -> int:
    memory = read_process(os.getpid())
    return memory.held_bytes if memory is not None else 0
