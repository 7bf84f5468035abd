"""Rows or batches that come one after another, as columns: what a spool takes."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from memfit.errors import DataError
from memfit.streaming.data.ragged import Ragged
from memfit.streaming.data.rows import RowName, flatten
from memfit.streaming.data.source import Array, Values

# Rows that are made columns at a time.
_CHUNK_BYTES = 1 << 20
_CHUNK_ROWS = 4096

Leaf = Array | str


def collect_rows(rows: Iterable[Any], name: str) -> Iterator[Mapping[str, Values]]:
    """Gives the columns of rows, many rows at a time.

    The first rows tell what a column holds: where they differ in length, and only in that, it is a
    column of sequences. Texts may differ in length.

    Args:
        rows: Tuples (features, label), dicts or arrays; see `rows.flatten`.
        name: What to call the data in messages.

    Raises:
        DataError: A row differs from those before it.
    """
    columns: dict[str, _Collecting] = {}
    at = 0
    size_bytes = 0
    where = RowName(name)
    iterator = iter(rows)
    while True:
        try:
            row = next(iterator, _END)
        except Exception as error:
            note(error, f"row {at} of {name}")
            raise
        if row is _END:
            break
        where.number = at
        leaves = flatten(row, where)
        if not columns:
            columns = {key: _Collecting(key) for key in leaves}
        if list(leaves) != list(columns):
            raise DataError(
                f"{where} has the columns {', '.join(leaves) or 'none'}; the rows "
                f"before it have {', '.join(columns)}. Expected the same in all rows."
            )
        for key, leaf in leaves.items():
            size_bytes += columns[key].add(leaf, where)
        at += 1
        if size_bytes >= _CHUNK_BYTES or at % _CHUNK_ROWS == 0:
            yield {key: column.take() for key, column in columns.items()}
            size_bytes = 0
    if columns and columns[next(iter(columns))].is_begun:
        yield {key: column.take() for key, column in columns.items()}


def collect_batches(batches: Iterable[Any], name: str) -> Iterator[Mapping[str, Values]]:
    """Gives the columns of batches.

    Args:
        batches: Rows as a tuple or a list (features, labels), a dict or an array of arrays.
        name: What to call the data in messages.

    Raises:
        DataError: A batch cannot be columns.
    """
    iterator = iter(batches)
    at = 0
    while True:
        at += 1
        with noting(f"batch {at} of {name}"):
            batch = next(iterator, _END)
        if batch is _END:
            return
        where = f"Batch {at} of {name}"
        # Lists are what torch's DataLoader makes of tuples.
        leaves = flatten(tuple(batch) if isinstance(batch, list) else batch, where)
        yield {key: _to_values(leaf, where, key) for key, leaf in leaves.items()}


@contextlib.contextmanager
def noting(what: str) -> Iterator[None]:
    """Lets errors of a user's own code pass, with a note on what was asked of it."""
    try:
        yield
    except Exception as error:
        note(error, what)
        raise


def note(error: Exception, what: str) -> None:
    """Adds to an error what was asked of a user's own code."""
    error.add_note(f"memfit.stream was reading {what}.")


_END = object()


class _Collecting:
    """The values of one column, until there are enough of them.

    Args:
        name: The column.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._leaves: list[Leaf] = []
        self._first: Leaf | None = None
        self._is_ragged = False
        self._is_decided = False

    @property
    def is_begun(self) -> bool:
        """Whether some are waiting."""
        return bool(self._leaves)

    def add(self, value: Any, where: object) -> int:
        """Adds the value of a row; returns how many bytes it has."""
        leaf = _to_leaf(value, where, self._name)
        if isinstance(value, list) and not value and isinstance(self._first, np.ndarray):
            leaf = self._first[:0]  # an empty list has no type of its own
        if self._first is None:
            self._first = leaf
        elif not self._fits(leaf):
            raise DataError(
                f"{where} differs from those before it in {self._name!r}: it has {_words(leaf)}, "
                f"they have {_words(self._first)}. Expected the same in all rows: convert, cut or "
                "pad it where the row is made. If these are batches, say so: "
                "memfit.stream(memfit.batches(...))."
            )
        self._leaves.append(leaf)
        return 4 * len(leaf) if isinstance(leaf, str) else leaf.nbytes

    def take(self) -> Values:
        """Returns what was added since the last time."""
        self._is_decided = True
        leaves, self._leaves = self._leaves, []
        if not self._is_ragged:
            return np.array(leaves) if isinstance(leaves[0], str) else np.stack(leaves)
        arrays = [one for one in leaves if not isinstance(one, str)]
        offsets = np.concatenate(([0], np.cumsum([len(one) for one in arrays])))
        return Ragged(np.concatenate(arrays), offsets)

    def _fits(self, leaf: Leaf) -> bool:
        first = self._first
        if isinstance(leaf, str) or isinstance(first, str):
            return isinstance(leaf, str) and isinstance(first, str)
        assert first is not None  # noqa: S101  # asked for later rows only
        if leaf.dtype != first.dtype or leaf.ndim != first.ndim:
            return False
        if leaf.shape == first.shape:
            return True
        if leaf.shape[1:] != first.shape[1:] or (self._is_decided and not self._is_ragged):
            return False
        self._is_ragged = True
        return True


def _to_leaf(value: Any, where: object, name: str) -> Leaf:
    if isinstance(value, str):
        return value
    array = np.asarray(value)
    if array.ndim == 0 and isinstance(array[()], bytes):  # TensorFlow's texts
        return _decode(array[()], where, name)
    _refuse_objects(array, value, where, name)
    return array


def _to_values(value: Any, where: object, name: str) -> Values:
    if hasattr(value, "row_splits") and hasattr(value, "values"):  # ragged, as TensorFlow has it
        steps = np.asarray(value.values)
        _refuse_objects(steps, value, where, name)
        return Ragged(steps, np.asarray(value.row_splits, np.int64))
    array = np.asarray(value)
    if array.ndim == 0:
        raise DataError(
            f"{where} has a single {type(value).__name__} in {name!r}. Expected a batch: an array "
            "with rows along its first axis. If these are rows, leave out memfit.batches()."
        )
    if array.dtype.kind == "O" and all(isinstance(one, bytes) for one in array.flat):
        texts = [_decode(one, where, name) for one in array.flat]
        return np.array(texts, str).reshape(array.shape)
    if array.dtype.kind != "O" or not all(isinstance(one, str) for one in array.flat):
        _refuse_objects(array, value, where, name)
    return array


def _decode(value: bytes, where: object, name: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise DataError(
            f"{where} has bytes in {name!r} that are not text: {value[:20]!r}. Expected numbers, "
            "arrays or text: decode it where the row is made, as numpy.frombuffer(...) does."
        ) from None


def _refuse_objects(array: Array, value: Any, where: object, name: str) -> None:
    if array.dtype.hasobject:
        raise DataError(
            f"{where} has a {type(value).__name__} in {name!r}. Expected a number, text or an "
            "array of numbers. Give a tuple (features, label), or a dict of arrays."
        )


def _words(leaf: Leaf | None) -> str:
    return "text" if leaf is None or isinstance(leaf, str) else f"{leaf.dtype} {leaf.shape}"
