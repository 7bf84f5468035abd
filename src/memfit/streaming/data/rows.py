"""Rows as users write them - a tuple, a dict, an array - and the columns that they make."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from memfit.errors import DataError
from memfit.streaming.data.source import Array, Column, Schema

# What the only column is called.
NAME = "values"
PARTS = ("x", "y", "weight")


# What most leaves are: faster to recognise than tuples and dicts.
_LEAVES = (np.ndarray, np.generic, int, float, str)


class RowName:
    """What to call a row in messages: made into text only if there is one.

    Args:
        data: What the rows are of.
    """

    __slots__ = ("data", "number")

    def __init__(self, data: str) -> None:
        self.data = data
        self.number = 0

    def __str__(self) -> str:
        return f"Row {self.number} of {self.data}"


def flatten(row: Any, where: object) -> dict[str, Any]:
    """Returns the values of a row, or of a batch, by the names of their columns.

    A tuple is (features,), (features, labels) or (features, labels, weights): `x`, `y` and
    `weight`. A dict has its own names. Anything else is one column. Tuples and dicts inside have
    names such as `x.0` and `x.left`.

    Args:
        row: The row.
        where: What to call it in messages.

    Raises:
        DataError: It is a tuple of none or of more than three.

    Example:
    >>> flatten(({"left": 1, "right": 2}, 3), "Row 0")
    {'x.left': 1, 'x.right': 2, 'y': 3}
    """
    if isinstance(row, tuple):
        if not 1 <= len(row) <= len(PARTS):
            raise DataError(
                f"{where} is a tuple of {len(row)}. Expected (features,), (features, label) or "
                "(features, label, weight); features may be a tuple or a dict of several."
            )
        return _flatten_items(zip(PARTS, row, strict=False))
    if not isinstance(row, _LEAVES) and isinstance(row, Mapping):
        return _flatten_items((str(key), value) for key, value in row.items())
    return {NAME: row}


def _flatten_items(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in items:
        if isinstance(value, _LEAVES):
            found[name] = value
        else:
            found.update(_leaves(value, name))
    return found


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _leaves(one, f"{name}.{key}")
    elif isinstance(value, tuple):
        for at, one in enumerate(value):
            yield from _leaves(one, f"{name}.{at}")
    else:
        yield name, value


def infer_schema(row: Any, where: object) -> Schema:
    """Returns the columns that a row has.

    Raises:
        DataError: A value is neither a number nor an array.
    """
    return tuple(
        Column(name, array.dtype.newbyteorder("="), array.shape)
        for name, leaf in flatten(row, where).items()
        for array in [_to_array(leaf, where, name)]
    )


def put_row(row: Any, schema: Schema, into: Mapping[str, Array], at: int, where: object) -> None:
    """Copies a row into arrays.

    Args:
        row: The row.
        schema: The columns that it must have.
        into: An array for every column.
        at: Its place in these.
        where: What to call it in messages.

    Raises:
        DataError: Its columns, shapes or types are others.
    """
    leaves = flatten(row, where)
    check_names(leaves, schema, where)
    for column in schema:
        array = _to_array(leaves[column.name], where, column.name)
        if array.shape != column.shape or not _is_type(array, column):
            raise DataError(
                f"{where} differs from row 0 in {column.name!r}: it has {array.dtype} "
                f"{array.shape}, row 0 has {column.dtype} {column.shape}. Expected the same in all "
                "rows: convert, cut or pad it where the row is made."
            )
        into[column.name][at] = array


def put_batch(
    batch: Any, schema: Schema, into: Mapping[str, Array], rows: tuple[int, int], where: object
) -> None:
    """Copies a batch - rows as a tuple, a dict or an array of arrays - into arrays.

    Args:
        batch: The batch.
        schema: The columns that it must have.
        into: An array for every column.
        rows: Where its rows go: from a start to a stop.
        where: What to call it in messages.

    Raises:
        DataError: Its columns, shapes, types or its number of rows are others.
    """
    leaves = flatten(batch, where)
    check_names(leaves, schema, where)
    start, stop = rows
    for column in schema:
        array = _to_array(leaves[column.name], where, column.name)
        shape = (stop - start, *column.shape)
        if array.shape != shape or not _is_type(array, column):
            raise DataError(
                f"{where}: {column.name!r} came as {array.dtype} {array.shape}. Expected "
                f"{column.dtype} {shape}, the requested number of rows, each like row 0."
            )
        into[column.name][start:stop] = array


def check_names(found: Mapping[str, Any], schema: Schema, where: object) -> None:
    """Raises if a row has other columns.

    Raises:
        DataError: It has others.
    """
    names = [one.name for one in schema]
    if len(found) != len(names) or not found.keys() >= set(names):
        raise DataError(
            f"{where} has the columns {_words(list(found))}; row 0 has "
            f"{_words(names)}. Expected the same in all rows."
        )


def _to_array(value: Any, where: object, name: str) -> Array:
    """A value as NumPy sees it; tensors of any framework know how to become an array."""
    if isinstance(value, str | bytes):
        raise DataError(
            f"{where} has text in {name!r}: {value[:40]!r}. Expected numbers or arrays, since "
            "texts differ in length from row to row: give an id for each text, or "
            'numpy.array(text, "U32") with a length that is enough for all.'
        )
    try:
        array = np.asarray(value)
    except ValueError as error:
        error.add_note(f"{where}: {name!r} cannot be made an array.")
        raise
    if array.dtype.hasobject:
        raise DataError(
            f"{where} has a {type(value).__name__} in {name!r}. Expected a number or an array of "
            "numbers. Return a tuple (features, label), or a dict of arrays."
        )
    return array


def _is_type(array: Array, column: Column) -> bool:
    return array.dtype == column.dtype or array.dtype.newbyteorder("=") == column.dtype


def _words(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none"
