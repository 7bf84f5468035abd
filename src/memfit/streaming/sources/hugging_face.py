"""`datasets.Dataset` of Hugging Face: the columns of its Arrow table, read by row.

What its table cannot give as numbers, such as images, is decoded row by row by the dataset itself;
so is everything after `set_transform`. The package is the user's own.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from memfit.errors import DataError
from memfit.streaming.data.ragged import Ragged
from memfit.streaming.data.reading import join_values, pick
from memfit.streaming.data.source import (
    Array,
    Column,
    Ranges,
    Schema,
    Source,
    Values,
    row_bytes,
    spread,
)
from memfit.streaming.sources import arrow_tables
from memfit.streaming.sources.by_index import RowsByIndex
from memfit.streaming.views.columns import ColumnSelection

# Rows that are taken out of the table at a time are there twice.
_CHUNK_BYTES = 32 * 1024
_SAMPLES = 64
_WHERE = "the Dataset"


class DatasetRows:
    """The rows of a dataset.

    Args:
        dataset: It gives Arrow tables.
        schema: What its columns become.
    """

    groups = None
    is_shuffled = False

    def __init__(self, dataset: Any, schema: Schema) -> None:
        self._dataset = dataset
        self.schema = schema
        self.num_rows = len(dataset)
        self._chunk_rows = max(1, int(_CHUNK_BYTES / max(row_bytes(schema), 1)))
        self.scratch_bytes = int(self._chunk_rows * row_bytes(schema))

    def fingerprint(self) -> str:
        """Returns a text made of types, shapes and some rows."""
        digest = hashlib.sha256(f"{self.num_rows}{self.schema}".encode())
        for row in spread(self.num_rows, _SAMPLES):
            for values in self.read(row, row + 1).values():
                found = values.values if isinstance(values, Ragged) else values
                digest.update(np.ascontiguousarray(found).tobytes())
        return digest.hexdigest()[:32]

    def check(self) -> None:
        """A dataset does not change; what changes it makes another one."""

    def read(self, start: int, stop: int) -> dict[str, Values]:
        """Returns rows."""
        if start == stop:
            return {one.name: _empty(one) for one in self.schema}
        parts = [dict(values) for _, values in self._pieces([(start, stop)])]
        return {one.name: join_values([each[one.name] for each in parts]) for one in self.schema}

    def read_into(self, ranges: Ranges, into: Mapping[str, Array]) -> None:
        """Reads rows into arrays."""
        for at, values in self._pieces(ranges):
            for name, found in values:
                into[name][at : at + len(found)] = found

    def _pieces(self, ranges: Ranges) -> Iterator[tuple[int, Iterator[tuple[str, Values]]]]:
        at = 0
        for start, stop in ranges:
            for first in range(start, stop, self._chunk_rows):
                last = min(first + self._chunk_rows, stop)
                yield at, self._take(first, last)
                at += last - first

    def _take(self, start: int, stop: int) -> Iterator[tuple[str, Values]]:
        table = self._dataset[start:stop]
        where = f"{_WHERE}, rows {start} to {stop - 1},"
        for column in self.schema:
            array = table.column(column.name).combine_chunks()
            yield column.name, arrow_tables.to_values(_plain(array), column, where)


def accepts_object(value: Any) -> bool:
    """Whether this is a dataset with random access."""
    kind = type(value)
    return (
        kind.__module__.split(".")[0] == "datasets"
        and any(one.__name__ == "Dataset" for one in kind.__mro__)
        and hasattr(kind, "__len__")
    )


def open_object(value: Any, columns: Sequence[str] | None = None) -> Source:
    """Returns the rows of a dataset.

    Args:
        value: The dataset.
        columns: The columns to read; those of its format if `None`.

    Raises:
        DataError: It has no rows, or a column holds what cannot be streamed.
    """
    if len(value) == 0:
        raise DataError("The Dataset has no rows: its len() is 0.")
    if value.format["type"] == "custom":  # a function of the user makes the rows
        made = RowsByIndex(value)
        return made if columns is None else ColumnSelection(made, columns)
    names = pick(columns, value.format["columns"], _WHERE)
    if not all(_is_plain(value.data.schema.field(name).type) for name in names):
        return RowsByIndex(value.with_format("numpy", columns=names))
    schema = tuple(_describe(value.data, name) for name in names)
    return DatasetRows(value.with_format("arrow", columns=names), schema)


def _is_plain(kind: Any) -> bool:
    """Whether these are numbers, lists of them, or text, which is refused with its own advice."""
    import pyarrow as pa

    while pa.types.is_list(kind) or pa.types.is_large_list(kind) or hasattr(kind, "storage_type"):
        kind = kind.storage_type if hasattr(kind, "storage_type") else kind.value_type
    while pa.types.is_fixed_size_list(kind):
        kind = kind.value_type
    return not (pa.types.is_struct(kind) or pa.types.is_binary(kind))


def _describe(table: Any, name: str) -> Column:
    """A column; lists that are all of one length are rows of one shape."""
    import pyarrow as pa

    field = table.schema.field(name)
    kind = getattr(field.type, "storage_type", field.type)
    chunks = [_plain(one) for one in table.column(name).chunks if len(one)]
    shape: list[int] = []
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        least, most, mean = _find_lengths(chunks)
        if least != most or most == 0:
            if shape:
                raise DataError(
                    f"Column {name!r} of {_WHERE} holds lists of lists of different length. "
                    "Expected lists of numbers; cut or pad those inside with map()."
                )
            return arrow_tables.describe_field(pa.field(name, kind), _WHERE, mean)
        shape.append(most)
        kind = kind.value_type
        chunks = [one.flatten() for one in chunks]
    inner = arrow_tables.describe_field(pa.field(name, kind), _WHERE)
    return Column(name, inner.dtype, (*shape, *inner.shape))


def _find_lengths(chunks: Sequence[Any]) -> tuple[int, int, float]:
    import pyarrow.compute as pc

    least, most, total, number = 2**62, 0, 0, 0
    for one in chunks:
        lengths = pc.list_value_length(one)
        found = pc.min_max(lengths).as_py()
        if found["min"] is not None:
            least, most = min(least, found["min"]), max(most, found["max"])
            total, number = total + pc.sum(lengths).as_py(), number + len(one)
    return least, most, total / max(number, 1)


def _plain(array: Any) -> Any:
    """Arrays of several axes are lists of lists below."""
    return getattr(array, "storage", array)


def _empty(column: Column) -> Values:
    rows = np.empty((0, *column.shape), column.dtype)
    return Ragged(rows, np.zeros(1, np.int64)) if column.is_ragged else rows
