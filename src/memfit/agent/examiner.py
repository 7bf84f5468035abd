"""Looks for what grows in the training process, and who holds it, at a bounded price."""

import functools
import itertools
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from memfit.agent.tracings import Tracings
from memfit.backends import LiveObject
from memfit.measure.holders import Held, Owner, cached_values, find_held
from memfit.measure.live_objects import describe, things_in
from memfit.measure.user_code import (
    Statement,
    as_typed,
    find_adding_statement,
    find_definition,
)
from memfit.record.entries import Holding, Retraced

# What an examination may cost, as a share of the time since the last one.
_SHARE_OF_TIME = 0.003
_SHARE_UNDER_SUSPICION = 0.05
# After these a suspicion has been examined: what grows is known, or cannot be seen this way.
_EARLY_LOOKS = 10
_MOST_S = 0.25
# A short run would end before its second look is due.
_FREE_LOOKS = 6
_LOOKED_AT = 24
_LEAST_LONGER = 3
# Something that is made once, however large, has grown in one look only.
_LEAST_RISES = 2
_LEAST_GROWTH_BYTES = 1_000_000
_MOST_WRITTEN = 12
# Frameworks keep more than the tensor with one that keeps its graph; these count by number.
_BY_NUMBER = frozenset(
    {"function", "dataset", "iterator", "writer", "model", "history", "optimizer", "figure"}
    | {"thread", "file", "tape", "graph", "process", "layer", "metric"}
)


@dataclass(slots=True)
class _Seen:
    """The size of what one name holds, look by look."""

    first_t_s: float
    first_size: int
    size: int
    num_rises: int = 0

    def see(self, size: int) -> None:
        """Takes the size of another look."""
        self.num_rises += size > self.size
        self.size = size


class Examiner:
    """Compares what the person's names hold now with what they held at first.

    Args:
        write: Takes what has grown.
        clock: The monotonic clock.
    """

    def __init__(
        self,
        write: Callable[[Holding | Retraced], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._tracings = Tracings()
        self._clock = clock
        self._is_debugged = sys.gettrace() is not None
        self._names: dict[str, _Seen] = {}
        self._num_looks = 0
        self._last_t_s = float("-inf")
        self._last_cost_s = 0.0

    def is_due(self, *, is_suspicious: bool) -> bool:
        """Whether another look is worth its price now."""
        if is_suspicious and self._num_looks < _FREE_LOOKS:
            return True
        is_early = self._num_looks < _EARLY_LOOKS
        share = _SHARE_UNDER_SUSPICION if is_suspicious and is_early else _SHARE_OF_TIME
        return self._last_cost_s <= share * (self._clock() - self._last_t_s)

    def examine(self) -> None:
        """Looks, and writes what has grown since the first look."""
        begun_s = time.perf_counter()
        now_t_s = self._clock()
        found = find_held(_MOST_S, reads_locals=not self._is_debugged)
        held = {one.owner.text: one for one in found}
        sizes = {text: size for text, one in held.items() if (size := _size(one)) is not None}
        for text, size in sizes.items():
            self._names.setdefault(text, _Seen(now_t_s, size, size)).see(size)
        self._write_grown({text: held[text] for text in sizes}, now_t_s)
        for one in self._tracings.look(now_t_s, list(sys.modules)):
            self._write(one)
        self._num_looks += 1
        self._last_t_s, self._last_cost_s = now_t_s, time.perf_counter() - begun_s

    def _write_grown(self, held: dict[str, Held], now_t_s: float) -> None:
        grown = [
            _describe_growth(one, self._names[text], now_t_s)
            for text, one in held.items()
            if self._names[text].num_rises >= _LEAST_RISES
        ]
        known = [one for one in grown if one is not None]
        known.sort(key=lambda one: one.growth_bytes, reverse=True)
        for one in known[:_MOST_WRITTEN]:
            self._write(one)


def _size(held: Held) -> int | None:
    """Length of a container, bytes of an array; `None` for what cannot grow."""
    value = held.value
    kind = type(value)
    if issubclass(kind, functools._lru_cache_wrapper):
        return int(value.cache_info().currsize)
    if issubclass(kind, list | deque | dict | set):
        return len(value)
    known = describe(value) if not held.owner.is_item else None
    return known.size_bytes if known is not None and known.kind in ("array", "tensor") else None


def _describe_growth(held: Held, seen: _Seen, now_t_s: float) -> Holding | None:
    value, owner = held.value, held.owner
    newest, container = _newest(value)
    added = seen.size - seen.first_size
    if container == "array":
        things = [one for one in [describe(value)] if one is not None]
        growth_bytes = added
    else:
        things = [thing for one in newest for thing in things_in(one)]
        growth_bytes = round(_bytes_each(newest) * added)
    if not things or (container != "array" and added < _LEAST_LONGER):
        return None
    kind = Counter(thing.kind for thing in things).most_common(1)[0][0]
    if growth_bytes < _LEAST_GROWTH_BYTES and kind not in _BY_NUMBER:
        return None
    statement = _find_statement(owner, container)
    return Holding(
        t_s=now_t_s,
        since_t_s=seen.first_t_s,
        owner=owner.text,
        container=container,
        length_before=seen.first_size,
        length=seen.size,
        growth_bytes=growth_bytes,
        item_kind=kind,
        example=next(thing.text for thing in things if thing.kind == kind),
        file=as_typed(owner.file),
        line=statement.line if statement else None,
        statement=statement.text if statement else None,
    )


def _find_statement(owner: Owner, container: str) -> Statement | None:
    if container == "lru_cache":
        return find_definition(owner.file, owner.name.removeprefix("."))
    return find_adding_statement(owner.file, owner.name) if owner.name else None


def _newest(value: Any) -> tuple[Sequence[Any], str]:
    """The last elements, without a copy of what may be millions of them."""
    kind = type(value)
    if issubclass(kind, functools._lru_cache_wrapper):
        return cached_values(value)[-_LOOKED_AT:], "lru_cache"
    if issubclass(kind, dict):
        return list(itertools.islice(reversed(value.values()), _LOOKED_AT)), "dict"
    if issubclass(kind, list | deque):
        return list(itertools.islice(reversed(value), _LOOKED_AT)), kind.__name__
    if issubclass(kind, set):
        return list(itertools.islice(value, _LOOKED_AT)), kind.__name__
    return (), "array"


def _bytes_each(newest: Sequence[Any]) -> float:
    """What one element keeps; buffers that elements share are counted once."""
    buffers: dict[int, LiveObject] = {
        thing.buffer_id: thing for one in newest for thing in things_in(one)
    }
    total_bytes = sum(thing.size_bytes for thing in buffers.values())
    return total_bytes / max(len(newest), 1)
