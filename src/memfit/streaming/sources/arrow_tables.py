"""Arrow's columns as NumPy's: which kinds there are, and what becomes of nulls.

A null is a NaN among floats and a NaT among dates; anywhere else it is refused, since there is no
number for it. Nothing is copied where Arrow and NumPy keep values the same way. Values are taken
from Arrow's buffers: its own `to_numpy` imports pandas where that is installed, some 30 MB.
"""

import contextlib
import dataclasses
import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from memfit.errors import DataError
from memfit.streaming.data.ragged import Ragged
from memfit.streaming.data.source import Array, Column, Values
from memfit.streaming.files.local import DataFile
from memfit.streaming.files.optional_packages import load
from memfit.streaming.files.remote import RemoteFile, RemotePath
from memfit.streaming.sources.row_groups import RowGroupSource

# What the numbers of categorical columns are given as.
_CODES = np.dtype("int32")


def describe_field(field: Any, where: str, mean_length: float = 0.0) -> Column:
    """Returns the column that an Arrow field becomes.

    Args:
        field: Its name and type.
        where: The file, for messages.
        mean_length: Steps of a sequence on average, if it holds sequences.

    Raises:
        DataError: It holds what cannot be streamed.
    """
    import pyarrow as pa

    kind, shape = field.type, []
    if pa.types.is_dictionary(kind):
        return Column(field.name, _CODES)
    is_ragged = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if is_ragged:
        kind = kind.value_type
    while pa.types.is_fixed_size_list(kind):
        shape.append(kind.list_size)
        kind = kind.value_type
    dtype = _find_dtype(kind)
    if dtype is None:
        raise DataError(_refusal(field, where))
    return Column(field.name, dtype, tuple(shape), mean_length if is_ragged else None)


def to_values(array: Any, column: Column, where: str) -> Values:
    """Returns the values of an Arrow array, or of a chunked one.

    Args:
        array: The array.
        column: What it has to become.
        where: The file and the part of it, for messages.

    Raises:
        DataError: It has nulls that no value stands for.
    """
    if hasattr(array, "chunks"):
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    if column.categories is not None:
        return _to_codes(array, column, where)
    if not column.is_ragged:
        return _to_dense(array, column, where)
    _refuse_nulls(array, column, where)
    offsets = _view(array.offsets, _number_dtype(array.offsets.type)).astype(np.int64)
    steps = array.values.slice(offsets[0], offsets[-1] - offsets[0])
    return Ragged(_to_dense(steps, column, where), offsets - offsets[0])


def with_categories(column: Column, dictionary: Any) -> Column:
    """Returns a categorical column with its categories.

    Args:
        column: The column.
        dictionary: The categories as an Arrow array.
    """
    return dataclasses.replace(column, categories=tuple(map(str, dictionary.to_pylist())))


def holds_floats(column: Column) -> bool:
    """Whether a null can be given as a value."""
    return column.dtype.kind in "fmM"


def refuse_nulls(column: Column, where: str, number: int) -> None:
    """Raises: there are nulls that no value stands for."""
    raise DataError(
        f"Column {column.name!r} of {where} has {number} null{'s' if number > 1 else ''}, and "
        f"{column.dtype} has no value for it. Fill them, or write the column as floats (a null is "
        "then a NaN), or leave it out with columns=[...]."
    )


def _to_dense(array: Any, column: Column, where: str) -> Array:
    for _ in column.shape:
        _refuse_nulls(array, column, where)
        array = array.flatten()
    if not holds_floats(column):
        _refuse_nulls(array, column, where)
    return _to_flat(array, column.dtype).reshape(-1, *column.shape)


def _to_flat(array: Any, dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "b":
        return _unpack_bits(array, 1)
    if dtype == "datetime64[D]":  # four bytes in Arrow, eight in NumPy
        values = _view(array, np.dtype(np.int32)).astype(np.int64).view(dtype)
    else:
        values = _view(array, dtype)
    if array.null_count:
        values = np.where(_unpack_bits(array, 0), values, np.array("nan", dtype))
    return values


def _view(array: Any, dtype: np.dtype[Any]) -> Array:
    """The values where they are; what stands for nulls may be anything."""
    if len(array) == 0:
        return np.empty(0, dtype)
    start = array.offset * dtype.itemsize
    return np.frombuffer(array.buffers()[1], dtype, len(array), start)


def _unpack_bits(array: Any, buffer: int) -> Array:
    """Of one bit a row: buffer 0 says which rows are there, 1 has the values of booleans."""
    if len(array) == 0:
        return np.empty(0, bool)
    stop = array.offset + len(array)
    packed = np.frombuffer(array.buffers()[buffer], np.uint8)
    return np.unpackbits(packed, count=stop, bitorder="little")[array.offset :].view(bool)


def _to_codes(array: Any, column: Column, where: str) -> Array:
    import pyarrow as pa

    indices = array.indices
    _refuse_nulls(indices, column, where)
    codes = _view(indices, _number_dtype(indices.type)).astype(_CODES)
    known = column.categories or ()
    found = [str(one) for one in array.dictionary.to_pylist()]
    if found == list(known[: len(found)]):
        return codes
    # Another part of the file counts its categories in another order.
    place = pa.compute.index_in(pa.array(found, pa.string()), pa.array(known, pa.string()))
    return _view(place, _CODES)[codes]


def _refuse_nulls(array: Any, column: Column, where: str) -> None:
    if array.null_count:
        refuse_nulls(column, where, array.null_count)


def _find_dtype(kind: Any) -> np.dtype[Any] | None:
    import pyarrow as pa

    types = pa.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return _number_dtype(kind)
    if types.is_fixed_size_binary(kind) and kind.byte_width > 0:
        return np.dtype(f"S{kind.byte_width}")
    if types.is_timestamp(kind):
        return np.dtype(f"datetime64[{kind.unit}]")
    if types.is_duration(kind):
        return np.dtype(f"timedelta64[{kind.unit}]")
    if types.is_date(kind):
        return np.dtype("datetime64[D]" if types.is_date32(kind) else "datetime64[ms]")
    return None


def _number_dtype(kind: Any) -> np.dtype[Any]:
    import pyarrow as pa

    if pa.types.is_boolean(kind):
        return np.dtype(bool)
    is_signed = pa.types.is_signed_integer(kind)
    letter = "f" if pa.types.is_floating(kind) else "i" if is_signed else "u"
    return np.dtype(f"{letter}{kind.bit_width // 8}")


def _refusal(field: Any, where: str) -> str:
    import pyarrow as pa

    kind = field.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    advice = (
        "Encode it as categories (pandas: astype('category'); Arrow: dictionary_encode()), which "
        "come as numbers"
        if text
        else "Write it as numbers, or as lists of numbers"
    )
    return (
        f"Column {field.name!r} of {where} holds {'text' if text else str(kind)}, which cannot be "
        f"streamed. {advice}, or leave it out with columns=[...]."
    )


class ArrowFile(RowGroupSource):
    """A file that pyarrow opens and that may stay open between reads.

    Those that are made of it call `RowGroupSource.__init__` when they know their columns.

    Args:
        path: Where it is.
    """

    # As a sentence begins, such as "an Arrow file"; and as what needs a package.
    a_kind: ClassVar[str]
    kinds: ClassVar[str]

    def __init__(self, path: Path | RemotePath) -> None:
        self._file = DataFile(path) if isinstance(path, Path) else RemoteFile(path)
        self._pyarrow = load("pyarrow", self.kinds, "parquet")
        self._reader: Any = None
        self._opening = threading.Lock()

    def fingerprint(self) -> str:
        """Returns a text made of the file's size, samples of it and the columns."""
        digest = hashlib.sha256(self._file.sample())
        self._file.close()
        digest.update(",".join(one.name for one in self.schema).encode())
        return digest.hexdigest()[:32]

    def check(self) -> None:
        """Raises if the file was changed."""
        self._file.check()

    def close(self) -> None:
        """Lets go of the open file; the next read opens it again."""
        with self._opening:
            self._reader = None

    @contextlib.contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """Raises what pyarrow raises inside with the file and what of it could not be read."""
        try:
            yield
        except (OSError, self._pyarrow.ArrowException) as error:
            self._file.check()  # damaged, or rewritten meanwhile?
            raise DataError(
                f"{self._file.path} is not {self.a_kind} that can be read: {what} is damaged or "
                f"truncated ({str(error).strip()}). Write or copy it again."
            ) from None
