"""NumPy's own files: `.npy`, read at any row without mapping or loading them.

Arrays that NumPy maps, as `np.load(..., mmap_mode="r")` gives them, are read from their file, too:
what is read through a mapping counts as memory of the process for as long as the system likes.
"""

import hashlib
import io
import math
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from memfit.errors import DataError
from memfit.streaming.data.source import Array, Column, Ranges, allocate
from memfit.streaming.files.local import DataFile

# As long as NumPy itself allows a header to be.
_MOST_HEADER_BYTES = 65_536
NAME = "values"


@dataclass(frozen=True, slots=True)
class ArrayLocation:
    """Where an array lies in a file.

    Attributes:
        dtype: As it is stored, which may be in foreign byte order.
        shape: Of the whole array.
        offset: First byte of its values.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int

    @property
    def row_bytes(self) -> int:
        """What a row takes in the file."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def stop(self) -> int:
        """The byte after its last."""
        return self.offset + self.shape[0] * self.row_bytes


class Npy:
    """Arrays in files, one a column, that have the same number of rows.

    Args:
        files: The file of each column, and where in it the array lies.
    """

    groups = None
    is_shuffled = False
    scratch_bytes = 0

    def __init__(self, files: Mapping[str, tuple[DataFile, ArrayLocation]]) -> None:
        self._files = dict(files)
        self.schema = tuple(
            Column(name, stored.dtype.newbyteorder("="), stored.shape[1:])
            for name, (_, stored) in self._files.items()
        )
        self.num_rows = next(iter(self._files.values()))[1].shape[0]

    def fingerprint(self) -> str:
        """Returns a text made of samples of each file and of what lies where in it."""
        files = {id(file): file for file, _ in self._files.values()}
        places = {name: stored for name, (_, stored) in self._files.items()}
        digest = hashlib.sha256(repr(places).encode())
        for one in files.values():
            digest.update(one.sample())
        return digest.hexdigest()[:32]

    def check(self) -> None:
        """Raises if a file was changed."""
        for file, _ in self._files.values():
            file.check()

    def close(self) -> None:
        """Lets go of open files; the next read opens them again."""
        for file, _ in self._files.values():
            file.close()

    def read(self, start: int, stop: int) -> dict[str, Array]:
        """Returns rows."""
        arrays = allocate(self.schema, stop - start)
        self.read_into([(start, stop)], arrays)
        return arrays

    def read_into(self, ranges: Ranges, into: Mapping[str, Array]) -> None:
        """Reads rows into arrays."""
        num_rows = sum(stop - start for start, stop in ranges)
        for name, (file, stored) in self._files.items():
            array, size = into[name][:num_rows], stored.row_bytes
            places = [
                (stored.offset + start * size, (stop - start) * size) for start, stop in ranges
            ]
            # As bytes: buffers know no dates and no text.
            file.read_at(places, array.reshape(-1).view(np.uint8).data)
            if not stored.dtype.isnative:
                array.byteswap(inplace=True)


def open_file(path: Path) -> Npy:
    """Returns the rows of a `.npy` file; its one column is called `"values"`.

    Raises:
        DataError: It is cut, or holds Python objects or columns one after another.
    """
    file = DataFile(path)
    return Npy({NAME: (file, read_header(file, 0, str(path), file.size_bytes))})


def read_header(file: DataFile, offset: int, name: str, stop: int) -> ArrayLocation:
    """Returns what the header at `offset` says of the array that follows it, up to `stop`.

    Args:
        file: Where it is.
        offset: Where the header begins.
        name: What to call the array in messages.
        stop: Where the array has to end.
    """
    text = bytearray(min(_MOST_HEADER_BYTES, stop - offset))
    file.read_at([(offset, len(text))], memoryview(text))
    try:
        head = io.BytesIO(bytes(text))
        version = np.lib.format.read_magic(head)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, is_by_column, dtype = read(head)
    except (ValueError, KeyError, EOFError) as error:
        raise DataError(
            f"{name} is not an .npy file that can be read: {error}. Expected what numpy.save "
            "writes. Write it again."
        ) from None
    _check_kind(name, shape, dtype, is_by_column=is_by_column)
    stored = ArrayLocation(dtype, shape, offset + head.tell())
    if stored.stop > stop:
        raise DataError(
            f"{name} is truncated: its header says {shape[0]} rows of {stored.row_bytes} bytes, "
            f"the file holds {(stop - stored.offset) // max(stored.row_bytes, 1)}. Write or copy "
            "it again."
        )
    return stored


def _check_kind(
    name: str, shape: tuple[int, ...], dtype: np.dtype[Any], *, is_by_column: bool
) -> None:
    if dtype.hasobject:
        raise DataError(
            f"{name} holds pickled Python objects, which are not read: a pickle can run any code. "
            "Save numbers, or fixed-length text, with numpy.save(..., allow_pickle=False)."
        )
    if not shape or shape[0] == 0 or math.prod(shape) * dtype.itemsize == 0:
        raise DataError(f"{name} has no rows: its shape is {shape}. Expected one row or more.")
    if is_by_column and sum(size > 1 for size in shape) > 1:
        raise DataError(
            f"{name} is stored column by column (Fortran order), so that a row is scattered over "
            "the file. Save numpy.ascontiguousarray(array) instead."
        )


def accepts_object(value: Any) -> bool:
    """Whether this is a part of a file without gaps, which nobody can write to by this array."""
    return (
        type(value) is np.memmap
        and value.mode == "r"
        and value.filename is not None
        and value.ndim > 0
        and value.flags.c_contiguous
        and Path(value.filename).is_file()
    )


def open_object(value: Any) -> Npy:
    """Returns the rows of the file behind an array."""
    mapping = value._mmap  # a slice knows only where the whole begins
    first = np.frombuffer(mapping, np.uint8).ctypes.data
    begin = value.offset - value.offset % mmap.ALLOCATIONGRANULARITY
    offset = begin + value.ctypes.data - first
    return Npy(
        {NAME: (DataFile(Path(value.filename)), ArrayLocation(value.dtype, value.shape, offset))}
    )
