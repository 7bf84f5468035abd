"""Any object with `__len__` and `__getitem__`, and so torch's map-style datasets: rows by number.

Where it has `__getitems__(numbers)`, rows are asked for many at a time: it returns a list of rows,
as torch has it, or a batch of them - a tuple, a dict or an array of arrays - which is quicker.
"""

import hashlib
import itertools
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from memfit.errors import DataChangedError, DataError, UsageError
from memfit.streaming.data.rows import RowName, infer_schema, put_batch, put_row
from memfit.streaming.data.source import Array, Ranges, allocate, row_bytes, spread
from memfit.streaming.sources.collect import note, noting

# Rows that are asked for at a time are there twice.
_CHUNK_BYTES = 16 * 1024
_LEAST_CHUNK, _MOST_CHUNK = 8, 1024
_SAMPLES = 8


class RowsByIndex:
    """The rows of an object.

    Its type and shapes are those of row 0; other rows are checked when they are read. Nobody knows
    whether the object bears several threads, so that it meets one at a time.

    Args:
        value: The object.

    Raises:
        DataError: It has no rows, or row 0 is not made of numbers.
    """

    groups = None
    is_shuffled = False

    def __init__(self, value: Any) -> None:
        self._value = value
        self._name = type(value).__name__
        self._lock = threading.Lock()
        self._row_name = RowName(f"the {self._name}")
        self.num_rows = len(value)
        if self.num_rows == 0:
            raise DataError(f"The {self._name} has no rows: its len() is 0.")
        with noting(f"row 0 of the {self._name}"):
            first = value[0]
        self.schema = infer_schema(first, f"Row 0 of the {self._name}")
        self._chunk_rows = 1
        if hasattr(value, "__getitems__"):
            fitting = int(_CHUNK_BYTES / max(row_bytes(self.schema), 1))
            self._chunk_rows = min(max(fitting, _LEAST_CHUNK), _MOST_CHUNK)
        self.scratch_bytes = int(self._chunk_rows * row_bytes(self.schema))

    def fingerprint(self) -> str:
        """Returns a text made of types, shapes and some rows.

        The rows are read twice: those that are made at random do not count.
        """
        digest = hashlib.sha256(f"{self._name}{self.num_rows}{self.schema}".encode())
        some = spread(self.num_rows, _SAMPLES)
        first, second = (self._read_some(some) for _ in range(2))
        for name, rows in first.items():
            if rows.tobytes() == second[name].tobytes():
                digest.update(np.ascontiguousarray(rows).tobytes())
        return digest.hexdigest()[:32]

    def check(self) -> None:
        """Raises if the object has another length."""
        found = len(self._value)
        if found != self.num_rows:
            raise DataChangedError(
                f"The {self._name} has changed since the stream was made: it had {self.num_rows} "
                f"rows and now has {found}. Make a new stream."
            )

    def read(self, start: int, stop: int) -> dict[str, Array]:
        """Returns rows."""
        arrays = allocate(self.schema, stop - start)
        self.read_into([(start, stop)], arrays)
        return arrays

    def read_into(self, ranges: Ranges, into: Mapping[str, Array]) -> None:
        """Reads rows into arrays."""
        numbers = itertools.chain.from_iterable(range(start, stop) for start, stop in ranges)
        with self._lock:
            if self._chunk_rows == 1:
                for at, number in enumerate(numbers):
                    self._put_one(number, into, at)
                return
            at = 0
            while chunk := list(itertools.islice(numbers, self._chunk_rows)):
                self._put_many(chunk, into, at)
                at += len(chunk)

    def _put_one(self, number: int, into: Mapping[str, Array], at: int) -> None:
        self._row_name.number = number
        try:
            row = self._value[number]
        except Exception as error:
            note(error, f"row {number} of the {self._name}")
            raise
        put_row(row, self.schema, into, at, self._row_name)

    def _put_many(self, numbers: list[int], into: Mapping[str, Array], at: int) -> None:
        which = f"{numbers[0]} to {numbers[-1]} of the {self._name}"
        with noting(f"rows {which}"):
            rows = self._value.__getitems__(numbers)
        if not isinstance(rows, list):
            put_batch(rows, self.schema, into, (at, at + len(numbers)), f"Rows {which}")
            return
        if len(rows) != len(numbers):
            raise DataError(
                f"__getitems__() of the {self._name} returned {len(rows)} rows for {len(numbers)} "
                f"numbers, from {numbers[0]} to {numbers[-1]}. Expected a row for each number."
            )
        for place, (number, row) in enumerate(zip(numbers, rows, strict=True), at):
            self._row_name.number = number
            put_row(row, self.schema, into, place, self._row_name)

    def _read_some(self, numbers: list[int]) -> dict[str, Array]:
        arrays = allocate(self.schema, len(numbers))
        self.read_into([(one, one + 1) for one in numbers], arrays)
        return arrays


def accepts_object(value: Any) -> bool:
    """Whether rows can be taken out of this by their number."""
    kind = type(value)
    # torch's IterableDataset inherits a `__getitem__` that only raises.
    is_iterated = any(one.__name__ == "IterableDataset" for one in kind.__mro__)
    return (
        not is_iterated
        and hasattr(kind, "__len__")
        and hasattr(kind, "__getitem__")
        and not isinstance(value, Mapping | str | bytes | bytearray | memoryview)
    )


def open_object(value: Any) -> RowsByIndex:
    """Returns the rows of an object.

    Raises:
        UsageError: It gives batches, not rows.
        DataError: It has no rows, or they are not made of numbers.
    """
    if any(one.__name__ == "PyDataset" for one in type(value).__mro__):
        raise UsageError(
            f"Cannot stream the {type(value).__name__} row by row: a PyDataset gives batches. Say "
            "so: memfit.stream(memfit.batches(...)), or give the files or arrays that it reads."
        )
    return RowsByIndex(value)
