"""Arrays that are in memory already: they take no further memory, and none of it is counted."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from memfit.errors import DataError
from memfit.streaming.data.source import Array, Column, Ranges, spread

NAME = "values"
_SAMPLES = 64


class Arrays:
    """One array, as a source.

    Args:
        array: Its rows are those of the first axis.
    """

    groups = None
    is_shuffled = False
    scratch_bytes = 0

    def __init__(self, array: Array) -> None:
        self.array = array
        self.schema = (Column(NAME, array.dtype, array.shape[1:]),)
        self.num_rows = len(array)

    def fingerprint(self) -> str:
        """Returns a text made of type, shape and some rows."""
        some = spread(self.num_rows, _SAMPLES)
        digest = hashlib.sha256(f"{self.array.dtype.str}{self.array.shape}".encode())
        digest.update(np.ascontiguousarray(self.array[some]).tobytes())
        return digest.hexdigest()[:32]

    def check(self) -> None:
        """Arrays may change as their owner likes."""

    def read(self, start: int, stop: int) -> dict[str, Array]:
        """Returns rows, without a copy."""
        return {NAME: self.array[start:stop]}

    def read_into(self, ranges: Ranges, into: Mapping[str, Array]) -> None:
        """Copies rows into an array."""
        at = 0
        for start, stop in ranges:
            into[NAME][at : at + stop - start] = self.array[start:stop]
            at += stop - start


def accepts_object(value: Any) -> bool:
    """Whether this is an array or what NumPy takes for one, as pandas columns are."""
    return isinstance(value, np.ndarray) or (
        hasattr(value, "__array__") and hasattr(value, "shape")
    )


def open_object(value: Any) -> Arrays:
    """Returns the rows of an array.

    Raises:
        DataError: It has no rows, or holds Python objects.
    """
    array = np.asarray(value)
    if array.ndim == 0 or array.size == 0:
        raise DataError(f"The array has no rows: its shape is {array.shape}.")
    if array.dtype.hasobject:
        raise DataError(
            f"The array holds Python objects (dtype {array.dtype}). Expected numbers or text of "
            "fixed length, such as array.astype('float32') or array.astype('U')."
        )
    return Arrays(array)
