"""Arrays that are stored in chunks: which rows are best read together."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from memfit.errors import DataError
from memfit.streaming.order.epoch import equal_edges
from memfit.streaming.sources.row_groups import LEAST_GROUP_BYTES


@dataclass(frozen=True, slots=True)
class ChunkedArray:
    """What is known of an array.

    Attributes:
        dtype: The type of its values.
        shape: Of the whole array.
        chunks: The shape of a chunk; `None` if it is not stored in chunks.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    chunks: tuple[int, ...] | None

    @property
    def row_bytes(self) -> int:
        """What a row takes."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def chunk_bytes(self) -> int:
        """What a chunk takes when it is decoded."""
        return 0 if self.chunks is None else math.prod(self.chunks) * self.dtype.itemsize


def group_edges(arrays: Sequence[ChunkedArray]) -> npt.NDArray[np.int64]:
    """Returns the edges of groups that cut no chunk, where chunks of all arrays agree.

    Example:
    >>> group_edges([ChunkedArray(np.dtype("f4"), (3000, 100), (1000, 10))]).tolist()
    [0, 1000, 2000, 3000]
    """
    num_rows = arrays[0].shape[0]
    # Where they do not agree, the largest are the costliest to read twice.
    chunk_rows = max((one.chunks[0] for one in arrays if one.chunks is not None), default=1)
    size = chunk_rows * sum(one.row_bytes for one in arrays)
    return equal_edges(num_rows, min(num_rows, chunk_rows * math.ceil(LEAST_GROUP_BYTES / size)))


def check_rows(where: str, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raises unless all arrays of a file have the same number of rows, one or more."""
    if not shapes:
        raise DataError(f"{where} holds no arrays with rows. Expected one or more.")
    rows = {name: shape[0] for name, shape in shapes.items()}
    each = ", ".join(f"{name} has {number}" for name, number in rows.items())
    if len(set(rows.values())) > 1:
        raise DataError(
            f"The arrays in {where} differ in rows: {each}. Expected the same number. Name those "
            "that belong together with columns=[...]."
        )
    for name, shape in shapes.items():
        if math.prod(shape) == 0:
            raise DataError(
                f"{name!r} of {where} has no rows: its shape is {shape}. Expected one row or more."
            )
