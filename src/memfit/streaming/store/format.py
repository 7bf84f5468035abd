"""The folder that `memfit.ingest` writes: a `.npy` file a column, and `memfit.json` about them.

A column of sequences has two files: the steps of all of them, and where each begins.
"""

import hashlib
import itertools
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from memfit.errors import DataError
from memfit.streaming.data.ragged import Ragged
from memfit.streaming.data.source import Array, Column, Ranges, Schema, Values
from memfit.streaming.files.local import DataFile
from memfit.streaming.files.npy import NAME, Npy, open_file

MANIFEST = "memfit.json"
_FORMAT = 1
_CHECK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Checksum:
    """The CRC-32 of a part of a file.

    Attributes:
        file: Its name.
        start: First byte of the part.
        stop: The byte after its last.
        crc: The checksum.
    """

    file: str
    start: int
    stop: int
    crc: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a folder holds.

    Attributes:
        num_rows: Rows of every column.
        is_shuffled: Whether rows are in a random order.
        schema: The columns.
        checksums: Of all files, part by part.
    """

    num_rows: int
    is_shuffled: bool
    schema: Schema
    checksums: tuple[Checksum, ...]

    def write(self, folder: Path) -> None:
        """Writes it into a folder."""
        columns = [
            {
                "name": one.name,
                "dtype": one.dtype.str,
                "shape": one.shape,
                "mean_length": one.mean_length,
                "categories": one.categories,
            }
            for one in self.schema
        ]
        checksums = [[one.file, one.start, one.stop, one.crc] for one in self.checksums]
        text = json.dumps(
            {
                "format": _FORMAT,
                "num_rows": self.num_rows,
                "is_shuffled": self.is_shuffled,
                "columns": columns,
                "checksums": checksums,
            }
        )
        with (folder / MANIFEST).open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())


class Store:
    """The columns of such a folder.

    Args:
        folder: Where it is.

    Raises:
        DataError: Its files are not what `memfit.json` says.
    """

    groups = None
    scratch_bytes = 0

    def __init__(self, folder: Path) -> None:
        manifest = read_manifest(folder)
        self.schema = manifest.schema
        self.num_rows = manifest.num_rows
        self.is_shuffled = manifest.is_shuffled
        self._manifest_file = DataFile(folder / MANIFEST)
        self._dense: dict[str, Npy] = {}
        self._ragged: dict[str, tuple[Npy, Npy]] = {}
        for at, column in enumerate(self.schema):
            first, *others = (open_file(folder / name) for name in file_names(at, column))
            if others:
                self._ragged[column.name] = (first, others[0])
            else:
                self._dense[column.name] = first
            _check_rows(folder, column, self.num_rows, [first, *others])

    def fingerprint(self) -> str:
        """Returns a text made of `memfit.json`, which has the checksums of all rows."""
        return hashlib.sha256(self._manifest_file.path.read_bytes()).hexdigest()[:32]

    def check(self) -> None:
        """Raises if a file was changed."""
        self._manifest_file.check()
        for one in self._files():
            one.check()

    def close(self) -> None:
        """Lets go of open files; the next read opens them again."""
        for one in self._files():
            one.close()

    def read(self, start: int, stop: int) -> dict[str, Values]:
        """Returns rows."""
        found: dict[str, Values] = {
            name: one.read(start, stop)[NAME] for name, one in self._dense.items()
        }
        for name, (steps, offsets) in self._ragged.items():
            places = offsets.read(start, stop + 1)[NAME]
            values = steps.read(int(places[0]), int(places[-1]))[NAME]
            found[name] = Ragged(values, places - places[0])
        return found

    def read_lengths(self, start: int, stop: int) -> dict[str, npt.NDArray[np.int64]]:
        """Returns how long the sequences of some rows are."""
        return {
            name: np.diff(offsets.read(start, stop + 1)[NAME])
            for name, (_, offsets) in self._ragged.items()
        }

    def read_into(self, ranges: Ranges, into: Mapping[str, Array]) -> None:
        """Reads rows into arrays."""
        for name, one in self._dense.items():
            one.read_into(ranges, {NAME: into[name]})

    def _files(self) -> Iterator[Npy]:
        yield from self._dense.values()
        yield from itertools.chain(*self._ragged.values())


def accepts_folder(folder: Path) -> bool:
    """Whether `memfit.ingest` wrote this folder."""
    return (folder / MANIFEST).is_file()


def open_folder(folder: Path) -> Store:
    """Returns the rows of a folder."""
    return Store(folder)


def file_names(index: int, column: Column) -> tuple[str, ...]:
    """Returns the files of a column: its values; of sequences the steps, and where each begins."""
    # Any text may be a column's name, but not a file's.
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", f"{index:03d}-{column.name}")[:80]
    return (f"{name}.steps.npy", f"{name}.offsets.npy") if column.is_ragged else (f"{name}.npy",)


def read_manifest(folder: Path) -> Manifest:
    """Returns what a folder says that it holds.

    Raises:
        DataError: It cannot be read, or a later version of memfit wrote it.
    """
    path = folder / MANIFEST
    try:
        read = json.loads(path.read_text())
        if read["format"] != _FORMAT:
            raise DataError(
                f"{path} has format {read['format']}; this memfit reads format {_FORMAT}. "
                "Update memfit, or ingest the data again."
            )
        columns = tuple(_read_column(one) for one in read["columns"])
        checksums = tuple(Checksum(*one) for one in read["checksums"])
        return Manifest(read["num_rows"], read["is_shuffled"], columns, checksums)
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} cannot be read: {error!r}. Ingest the data again.") from None


def _read_column(read: Mapping[str, Any]) -> Column:
    # Folders of older versions know no categories.
    categories = read.get("categories")
    return Column(
        read["name"],
        np.dtype(read["dtype"]),
        tuple(read["shape"]),
        read["mean_length"],
        None if categories is None else tuple(categories),
    )


def verify(folder: Path) -> None:
    """Reads all files of a folder and compares them with their checksums.

    Raises:
        DataError: A part of a file is not what was written.
    """
    for part in read_manifest(folder).checksums:
        check_part(folder, part)


def check_part(folder: Path, part: Checksum) -> None:
    """Reads a part of a file and compares it with its checksum.

    Raises:
        DataError: It is not what was written.
    """
    path = folder / part.file
    crc = compute_checksum(DataFile(path), part.start, part.stop)
    if crc != part.crc:
        raise DataError(
            f"{path} is damaged between bytes {part.start} and {part.stop}: its checksum is "
            f"{crc:08x}, and {part.crc:08x} was written. Ingest the data again."
        )


def compute_checksum(file: DataFile, start: int, stop: int) -> int:
    """Returns the CRC-32 of a part of a file."""
    crc = 0
    buffer = memoryview(bytearray(_CHECK_BYTES))
    for at in range(start, stop, _CHECK_BYTES):
        part = buffer[: min(_CHECK_BYTES, stop - at)]
        file.read_at([(at, len(part))], part)
        crc = zlib.crc32(part, crc)
    return crc


def _check_rows(folder: Path, column: Column, num_rows: int, files: Sequence[Npy]) -> None:
    expected = num_rows + 1 if column.is_ragged else num_rows
    found = files[-1]
    values = files[0].schema[0]
    if found.num_rows != expected or (values.dtype, values.shape) != (column.dtype, column.shape):
        raise DataError(
            f"Column {column.name!r} of {folder} is not what {MANIFEST} says: expected {expected} "
            f"rows of {column.dtype} {column.shape}, found {found.num_rows} of {values.dtype} "
            f"{values.shape}. Ingest the data again."
        )
