"""What the user's own names hold at each check, and which of it has grown."""

import functools
import sys
import weakref
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memfit.backends.objects import LiveObject
from memfit.heap.describe import (
    describe,
    graph_length,
    graph_size_bytes,
    is_keras_state,
    plain_size_bytes,
    things_in,
)
from memfit.heap.holders import Held, Owner, cached_values, find_held
from memfit.record.evidence import Holding
from memfit.slots import (
    class_bases,
    class_module,
    class_name,
    first_items,
    is_a,
    last_items,
    length,
)
from memfit.user_code.frames import display_path
from memfit.user_code.statements import (
    Statement,
    find_adding_statement,
    find_assignment,
    find_definition,
    statement_at,
)

_ARRAYS = frozenset({"array", "tensor", "variable", "view", "torch view"})
_NUM_NEWEST = 24
_LEAST_LONGER = 3
# Something that is made once, however large, has grown in one check only.
_LEAST_RISES = 2
_LEAST_GROWTH_BYTES = 1_000_000
# Tensors that look small may be views of large ones.
_MANY = 64
_MOST_WRITTEN = 12
_MOST_GRAPHS = 4
# Frameworks keep more than the tensor with one that keeps its graph; these count by number.
_BY_NUMBER = frozenset(
    {"function", "dataset", "iterator", "writer", "model", "history", "optimizer", "figure"}
    | {"thread", "file", "tape", "graph", "process", "layer", "metric"}
)


@dataclass(slots=True)
class _Seen:
    """The size of what one name holds, from check to check.

    What is filled and emptied again has grown only where it stands above all earlier fillings.
    """

    first_t_s: float
    first_size: int
    size: int
    first_item: weakref.ref[Any] | None = None
    highest: int = 0
    num_rises: int = 0

    def see(self, now_t_s: float, size: int, first_item: weakref.ref[Any] | None) -> None:
        """Adds the size at another check."""
        is_another = self.first_item is not None and self.first_item is not first_item
        if size < self.size or is_another:
            self.first_t_s, self.first_size, self.num_rises = now_t_s, self.highest, 0
        self.num_rises += size > self.highest
        self.highest = max(self.highest, size)
        self.size, self.first_item = size, first_item


class GrowingNames:
    """Compares what the user's names hold now with what they held at first."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._is_debugged = sys.gettrace() is not None

    def _note_mapped(self, held: Held, now_t_s: float) -> Iterator[Holding]:
        """A mapped file is written once: its pages are memory, but not the script's."""
        owner = held.owner
        known = describe(held.value)
        if known is None or known.kind != "memmap" or owner.text in self._seen:
            return
        size_bytes = known.size_bytes
        self._seen[owner.text] = _Seen(now_t_s, size_bytes, size_bytes)
        statement = find_assignment(owner.file, owner.name)
        yield Holding(
            t_s=now_t_s,
            since_t_s=now_t_s,
            owner=owner.text,
            container="memmap",
            length_before=size_bytes,
            length=size_bytes,
            growth_bytes=0,
            item_kind="memmap",
            file=display_path(owner.file),
            line=statement.line if statement else None,
            statement=statement.text if statement else None,
        )

    def find_grown(self, now_t_s: float, most_s: float, roots: Iterable[Any] = ()) -> list[Holding]:
        """Returns what has grown since the first check, the most first.

        Args:
            now_t_s: When.
            most_s: Time after which the search ends, complete or not.
            roots: Objects to begin at, apart from the user's own names.
        """
        found = find_held(most_s, reads_locals=not self._is_debugged, roots=roots)
        grown: list[Holding] = []
        for held in found:
            size = _size(held)
            grown.extend(self._note_mapped(held, now_t_s))
            if size is None:
                continue
            text = held.owner.text
            seen = self._seen.setdefault(text, _Seen(now_t_s, size, size, highest=size))
            seen.see(now_t_s, size, _first_item(held.value))
            if seen.num_rises >= _LEAST_RISES:
                holding = _describe_growth(held, seen, now_t_s)
                if holding is not None:
                    grown.append(holding)
        grown.sort(key=lambda one: one.growth_bytes, reverse=True)
        return grown[:_MOST_WRITTEN]


def _first_item(value: Any) -> weakref.ref[Any] | None:
    """The first item of a list or dict, without keeping it alive; `None` where that harms."""
    found = first_items(value, 1) if is_a(value, list, dict) else []
    if not found or "numpy" in map(class_module, class_bases(type(found[0]))):
        return None  # an array with a weak reference cannot be resized in place
    try:
        return weakref.ref(found[0])
    except TypeError:  # a number, text, a tuple
        return None


def _size(held: Held) -> int | None:
    """Length of a container, bytes of an array, steps of a graph; `None` for what cannot grow."""
    value = held.value
    if is_a(value, functools._lru_cache_wrapper):
        return int(functools._lru_cache_wrapper.cache_info(value).currsize)
    if is_a(value, list, deque, dict, set):
        return length(value)
    known = describe(value) if not held.owner.is_item else None
    if known is None:
        return None
    if known.kind == "graph":
        return graph_length(value)
    return known.size_bytes if known.kind in _ARRAYS else None


def _describe_growth(held: Held, seen: _Seen, now_t_s: float) -> Holding | None:
    value, owner = held.value, held.owner
    newest, container = _newest(value)
    added = seen.size - seen.first_size
    growth = _growth_of(value, newest, container, added)
    if growth is None:
        return None
    kind, growth_bytes, example = growth
    is_many = kind == "tensor" and added >= _MANY
    if growth_bytes < _LEAST_GROWTH_BYTES and kind not in _BY_NUMBER and not is_many:
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
        example=example,
        file=display_path(owner.file),
        line=statement.line if statement else None,
        statement=statement.text if statement else None,
        is_state=owner.owner_class is not None and is_keras_state(owner.owner_class),
    )


def _growth_of(
    value: Any, newest: Sequence[Any], container: str, added: int
) -> tuple[str, int, str] | None:
    """The kind of what was added, its bytes, and an example."""
    if container in ("array", "graph"):
        known = describe(value)
        if known is None:
            return None
        growth_bytes = added
        if container == "graph":
            growth_bytes = round(graph_size_bytes([value]) / max(graph_length(value), 1) * added)
        return known.kind, growth_bytes, known.text
    things = [thing for one in newest for thing in things_in(one)]
    if added < _LEAST_LONGER or not newest:
        return None
    if not things:
        size_bytes = sum(map(plain_size_bytes, newest)) / len(newest)
        return "object", round(size_bytes * added), class_name(type(newest[0]))
    kind = _main_kind(things, len(newest))
    bytes_each = _bytes_each(newest)
    if kind == "graph":
        graphs = [one for one in newest if (known := describe(one)) and known.kind == "graph"]
        bytes_each += graph_size_bytes(graphs[:_MOST_GRAPHS]) / max(len(graphs[:_MOST_GRAPHS]), 1)
    example = next(thing.text for thing in things if thing.kind == kind)
    return kind, round(bytes_each * added), example


def _main_kind(things: Sequence[LiveObject], num_items: int) -> str:
    """What takes the most bytes, unless each item has something of its own that has no bytes.

    One model that all items refer to is not what is piling up.
    """
    distinct = {thing.buffer_id: thing.kind for thing in things if thing.kind in _BY_NUMBER}
    by_number = Counter(distinct.values()).most_common(1)
    if by_number and by_number[0][1] > num_items // 2:
        return by_number[0][0]
    sizes: Counter[str] = Counter()
    for thing in things:
        sizes[thing.kind] += thing.size_bytes + 1
    return sizes.most_common(1)[0][0]


def _find_statement(owner: Owner, container: str) -> Statement | None:
    if container == "lru_cache":
        return find_definition(owner.file, owner.name.removeprefix("."))
    if owner.line is not None:
        return statement_at(owner.file, owner.line)
    if not owner.name:
        return None
    adding = find_adding_statement(owner.file, owner.name)
    return adding or find_assignment(owner.file, owner.name)


def _newest(value: Any) -> tuple[Sequence[Any], str]:
    """The last elements, without a copy of what may be millions of them."""
    if is_a(value, functools._lru_cache_wrapper):
        return cached_values(value)[-_NUM_NEWEST:], "lru_cache"
    if is_a(value, dict):
        return last_items(value, _NUM_NEWEST), "dict"
    if is_a(value, list, deque, set):
        return last_items(value, _NUM_NEWEST), class_name(type(value))
    known = describe(value)
    return (), "graph" if known is not None and known.kind == "graph" else "array"


def _bytes_each(newest: Sequence[Any]) -> float:
    """What one element keeps; buffers that elements share are counted once."""
    buffers: dict[int, LiveObject] = {thing.buffer_id: thing for thing in _things_in_all(newest)}
    total_bytes = sum(thing.size_bytes for thing in buffers.values())
    return total_bytes / max(len(newest), 1)


def _things_in_all(values: Iterable[Any]) -> Iterator[LiveObject]:
    for value in values:
        yield from things_in(value)
