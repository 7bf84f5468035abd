"""A user's own code for each batch, in threads; batches keep their order.

What the code returns is learned from one batch before anything else is planned, so that its bytes
are counted and a framework can be told what to expect.
"""

import collections
import contextlib
import os
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import starmap
from typing import Any

import numpy as np

from memfit.backends.feeds import Spec
from memfit.errors import UsageError
from memfit.streaming.data.layout import Layout
from memfit.streaming.data.ragged import Ragged
from memfit.streaming.data.rows import PARTS
from memfit.streaming.data.source import Source

_MOST_THREADS = 4

Batch = tuple[Any, ...]
Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class BatchMap:
    """What a function makes of batches.

    Attributes:
        function: Takes inputs, targets and weights; returns them, or inputs alone.
        specs: A `Spec` in the place of each array that it returns.
        row_bytes: What it returns for a row takes in memory.
        growth: The same, relative to what it gets.
    """

    function: Function
    specs: Batch
    row_bytes: float
    growth: float

    def apply(self, batch: Batch, epoch: int, number: int) -> Batch:
        """Returns what the function makes of a batch.

        Raises:
            UsageError: It is other than what it made of the first.
        """
        try:
            made = _call(self.function, batch)
            _require_like(self.specs, made, count_rows(batch))
        except Exception as error:
            error.add_note(f"Raised in map= of memfit.stream, in epoch {epoch}, batch {number}.")
            raise
        return made


def learn_mapping(function: Function, source: Source, layout: Layout, num_rows: int) -> BatchMap:
    """Runs a function on the first rows of a source, or on all, to see what it makes of them.

    Raises:
        UsageError: It cannot be called, or returns what cannot be a batch.
    """
    if not callable(function):
        raise UsageError(
            f"map must be a function of a batch. Received: {function!r}. "
            "Give one such as map=lambda x, y: (x / 255, y)."
        )
    num_rows = min(num_rows, source.num_rows)
    columns = {
        name: values.pad() if isinstance(values, Ragged) else values
        for name, values in source.read(0, num_rows).items()
    }
    batch = layout.arrange(columns)
    given_bytes = sum(array.nbytes for array in _leaves(batch))
    try:
        made = _call(function, batch)
    except Exception as error:
        error.add_note(f"Raised in map= of memfit.stream, on the first {num_rows} rows.")
        raise
    is_ragged = any(one.is_ragged for one in source.schema)
    specs = _walk(made, lambda array: _learn(array, num_rows, is_ragged=is_ragged))
    size_bytes = sum(array.nbytes for array in _leaves(made))
    return BatchMap(function, specs, size_bytes / num_rows, size_bytes / max(given_bytes, 1))


def map_in_order(
    batches: Iterator[Batch], apply: Callable[[int, Batch], Batch], most_ahead: int
) -> Generator[Batch, None, None]:
    """Gives what `apply` makes of each batch and its number, in their order.

    Args:
        batches: Where they come from; asked in the caller's own thread.
        apply: Called in threads.
        most_ahead: How many batches may be in work.
    """
    num_threads = max(1, min(_MOST_THREADS, os.cpu_count() or 1, most_ahead))
    begun: collections.deque[Future[Batch]] = collections.deque()
    pool = ThreadPoolExecutor(num_threads, "memfit-stream")
    with contextlib.ExitStack() as stack:
        stack.callback(pool.shutdown, cancel_futures=True)
        for number, batch in enumerate(batches):
            begun.append(pool.submit(apply, number, batch))
            del batch  # or it would be there until the next comes
            if len(begun) > num_threads:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()


def count_rows(batch: Batch) -> int:
    """Returns how many rows a batch has."""
    one: Any = batch
    while isinstance(one, tuple | dict):
        one = next(iter(one.values() if isinstance(one, dict) else one))
    return len(one)


def _call(function: Function, batch: Batch) -> Batch:
    made = function(*batch)
    parts = made if isinstance(made, tuple) else (made,)
    if not 1 <= len(parts) <= len(PARTS):
        raise UsageError(
            f"map must return inputs, (inputs, targets) or (inputs, targets, weights). "
            f"Received: a tuple of {len(parts)}."
        )
    return tuple(_walk(part, np.asarray) for part in parts)


def _learn(array: Any, num_rows: int, *, is_ragged: bool) -> Spec:
    _require_rows(array, num_rows)
    if array.dtype.hasobject:
        raise UsageError(
            "map must return arrays of numbers or text. Received: an array of objects."
        )
    # Sequences are as long as the longest of each batch.
    length = (None,) if is_ragged and array.ndim > 1 else array.shape[1:2]
    return Spec((None, *length, *array.shape[2:]), array.dtype)


def _require_like(specs: Batch, made: Batch, num_rows: int) -> None:
    found, expected = _leaves(made), _leaves(specs)
    if len(found) != len(expected) or not all(starmap(_is_like, zip(found, expected, strict=True))):
        raise UsageError(
            "map must return the same kind of arrays for every batch. "
            f"Received: {', '.join(_describe(one) for one in found)}. "
            f"Expected, as for the first: {', '.join(_describe(one) for one in expected)}."
        )
    for array in found:
        _require_rows(array, num_rows)


def _require_rows(array: Any, num_rows: int) -> None:
    if array.ndim == 0 or len(array) != num_rows:
        raise UsageError(
            f"map must return as many rows as it is given. Received: an array of shape "
            f"{array.shape} for {num_rows} rows."
        )


def _is_like(array: Any, spec: Spec) -> bool:
    is_text = array.dtype.kind in "US" and array.dtype.kind == spec.dtype.kind
    return (
        (is_text or array.dtype == spec.dtype)
        and array.ndim == len(spec.shape)
        and all(
            size in (None, found)
            for size, found in zip(spec.shape[1:], array.shape[1:], strict=True)
        )
    )


def _describe(one: Any) -> str:
    return f"{one.dtype} {tuple(one.shape[1:])}"


def _walk(tree: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(tree, dict):
        return {key: _walk(one, function) for key, one in tree.items()}
    if isinstance(tree, tuple | list):
        return tuple(_walk(one, function) for one in tree)
    return function(tree)


def _leaves(tree: Any) -> list[Any]:
    found: list[Any] = []
    _walk(tree, found.append)
    return found
