"""Arrays that are larger than the budget go to disk once; their owner can let go of them."""

import hashlib
import mmap
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from memfit.streaming.data.source import Array, Ranges, Source, Values, read_into
from memfit.streaming.sources.arrays import NAME, Arrays
from memfit.streaming.store.spool import spool
from memfit.streaming.views.concatenate import Concatenation, concatenate_sources
from memfit.streaming.views.zip import Zip

_CHUNK_BYTES = 4_000_000


class ArraysOnDisk:
    """Rows of an array that are in the cache now; the array itself is not kept.

    Args:
        arrays: The array, as a source.
    """

    groups = None
    is_shuffled = False
    scratch_bytes = 0

    def __init__(self, arrays: Arrays) -> None:
        self._rows = spool(
            ({NAME: chunk} for chunk in _chunks(arrays.array)),
            _make_key(arrays.array),
            total=len(arrays.array),
            name="an array in memory",
        )
        # The same as in memory: a state is good for both.
        self._fingerprint = arrays.fingerprint()
        self.schema = self._rows.schema
        self.num_rows = self._rows.num_rows

    def fingerprint(self) -> str:
        """Returns that of the array."""
        return self._fingerprint

    def check(self) -> None:
        """Raises if the cache was changed."""
        self._rows.check()

    def read(self, start: int, stop: int) -> Mapping[str, Values]:
        """Returns rows."""
        return self._rows.read(start, stop)

    def read_into(self, ranges: Ranges, into: Mapping[str, Array]) -> None:
        """Reads rows into an array."""
        read_into(self._rows, ranges, into)


def spill(source: Source, budget_bytes: int) -> Source:
    """Returns the source with its arrays on disk if these are larger than the budget together.

    What was spilled before is found again in the cache by its contents. Arrays that are mapped
    from a file are on disk already, and stay as they are.

    Raises:
        DataError: The disk is too small.
    """
    in_memory = sum(one.array.nbytes for one in _find(source))
    return source if in_memory <= budget_bytes else _replace(source)


def _find(source: Source) -> Iterator[Arrays]:
    if isinstance(source, Arrays):
        if _is_in_memory(source.array):
            yield source
    elif isinstance(source, Concatenation):
        for part in source.parts:
            yield from _find(part)
    elif isinstance(source, Zip):
        for part in source.parts.values():
            yield from _find(part)


def _replace(source: Source) -> Source:
    if isinstance(source, Arrays) and _is_in_memory(source.array):
        return ArraysOnDisk(source)
    if isinstance(source, Concatenation):
        return concatenate_sources([_replace(one) for one in source.parts])
    if isinstance(source, Zip):
        return Zip({name: _replace(one) for name, one in source.parts.items()})
    return source


def _is_in_memory(array: Array) -> bool:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return not isinstance(base, mmap.mmap)


def _chunks(array: Array) -> Iterator[Array]:
    chunk_rows = max(1, _CHUNK_BYTES * len(array) // array.nbytes)
    for start in range(0, len(array), chunk_rows):
        yield array[start : start + chunk_rows]


def _make_key(array: Array) -> str:
    """All of the array counts: a cache of other rows would train on these."""
    digest = hashlib.sha256(f"array {array.dtype.str} {array.shape}".encode())
    for chunk in _chunks(array):
        digest.update(np.ascontiguousarray(chunk).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
