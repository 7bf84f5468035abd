"""Zarr folders, of format 2 and 3: a column an array, read a row of chunks at a time."""

import contextlib
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memfit.errors import DataChangedError, DataError
from memfit.streaming.data.reading import pick
from memfit.streaming.data.source import Column, Values, spread
from memfit.streaming.files.npy import NAME
from memfit.streaming.files.optional_packages import load
from memfit.streaming.sources.chunked import ChunkedArray, check_rows, group_edges
from memfit.streaming.sources.row_groups import RowGroupSource

_MARKS = ("zarr.json", ".zgroup", ".zarray")
# What is read, and chunks as they are stored: Zarr reads several at a time.
_DECODING = 2
_SAMPLES = 16
_SAMPLE_BYTES = 4096


class ZarrArrays(RowGroupSource):
    """Arrays in any store.

    Args:
        where: What the store is called.
        arrays: The arrays as Zarr knows them, by name.
    """

    def __init__(self, where: str, arrays: Mapping[str, Any]) -> None:
        self._where = where
        self._arrays = dict(arrays)
        known = {
            name: ChunkedArray(np.dtype(one.dtype), one.shape, one.chunks)
            for name, one in arrays.items()
        }
        schema = tuple(
            Column(name, one.dtype.newbyteorder("="), one.shape[1:]) for name, one in known.items()
        )
        groups = group_edges(list(known.values()))
        largest = max(int(groups[1]) * one.row_bytes for one in known.values())
        super().__init__(schema, groups, _DECODING * largest)

    def fingerprint(self) -> str:
        """Returns a text made of names, types, shapes and some rows."""
        digest = hashlib.sha256()
        for name, one in self._arrays.items():
            digest.update(f"{name} {one.dtype} {one.shape};".encode())
            for at in spread(self.num_rows, _SAMPLES):
                digest.update(np.ascontiguousarray(one[at : at + 1]).tobytes())
        return digest.hexdigest()[:32]

    def check(self) -> None:
        """What is in a store may change as its owner likes."""

    def close(self) -> None:
        """Zarr keeps no file open."""

    def decode(self, group: int) -> Iterator[tuple[str, Values]]:
        """Gives the arrays, a row of chunks at a time."""
        start, stop = self._edges[group], self._edges[group + 1]
        for column in self.schema:
            with _reading(self._where, f"rows {start} to {stop} of {column.name!r}"):
                values = self._arrays[column.name][start:stop]
            yield column.name, np.asarray(values, column.dtype)


class ZarrFolder(ZarrArrays):
    """Arrays of a folder, whose files must not change.

    Args:
        folder: Where they are.
        arrays: The arrays as Zarr knows them, by name.
    """

    def __init__(self, folder: Path, arrays: Mapping[str, Any]) -> None:
        super().__init__(str(folder), arrays)
        self._folder = folder
        self._stamp = _stamp(folder)

    def fingerprint(self) -> str:
        """Returns a text made of the names and sizes of all files and samples of some."""
        files = _list_files(self._folder)
        digest = hashlib.sha256(",".join(self._arrays).encode())
        for path, found in files:
            digest.update(f"{path.relative_to(self._folder).as_posix()} {found.st_size};".encode())
        for at in spread(len(files), _SAMPLES):
            with files[at][0].open("rb") as file:
                digest.update(file.read(_SAMPLE_BYTES))
        return digest.hexdigest()[:32]

    def check(self) -> None:
        """Raises if a file was changed, or one came or went."""
        if _stamp(self._folder) != self._stamp:
            raise DataChangedError(
                f"{self._folder} has changed since the stream was made. Rows would be mixed up: "
                "make a new stream, and do not write to files that a training reads."
            )


def accepts_folder(folder: Path) -> bool:
    """Whether this is an array or a group of Zarr's."""
    return any((folder / one).is_file() for one in _MARKS)


def open_folder(folder: Path, columns: Sequence[str] | None = None) -> ZarrFolder:
    """Returns the arrays of a folder, which must have the same number of rows.

    Arrays inside groups are called by their path, as in `"train/x"`; single values are left out.

    Raises:
        DataError: It cannot be read, or its arrays differ in rows.
    """
    zarr = load("zarr", "Zarr folders", "zarr")
    with _reading(str(folder), "its metadata"):
        opened = zarr.open(folder, mode="r")
        if isinstance(opened, zarr.Array):
            found = {NAME: opened} if opened.shape else {}
        else:
            found = {
                name: one
                for name, one in opened.members(max_depth=None)
                if isinstance(one, zarr.Array) and one.shape
            }
    names = pick(columns, sorted(found), str(folder))
    check_rows(str(folder), {name: found[name].shape for name in names})
    for name in names:
        check_kind(str(folder), name, found[name].dtype)
    return ZarrFolder(folder, {name: found[name] for name in names})


def check_kind(where: str, name: str, dtype: Any) -> None:
    """Raises if an array holds what cannot be streamed."""
    if not isinstance(dtype, np.dtype) or dtype.kind in "OTV":
        raise DataError(
            f"Array {name!r} of {where} holds {dtype}, which cannot be streamed. Write numbers, "
            "or text of fixed length, or leave it out with columns=[...]."
        )


@contextlib.contextmanager
def _reading(where: str, what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
        raise DataError(
            f"{where} is not Zarr data that can be read: {what} is damaged or truncated ({error}). "
            "Write or copy it again."
        ) from None


def _list_files(folder: Path) -> list[tuple[Path, os.stat_result]]:
    paths = sorted(one for one in folder.rglob("*") if one.is_file())
    return [(one, one.stat()) for one in paths]


def _stamp(folder: Path) -> bytes:
    digest = hashlib.sha256()
    for path, found in _list_files(folder):
        digest.update(f"{path} {found.st_size} {found.st_mtime_ns};".encode())
    return digest.digest()


def accepts_object(value: Any) -> bool:
    """Whether this is an array of Zarr's with rows."""
    zarr = sys.modules.get("zarr")
    return zarr is not None and isinstance(value, zarr.Array) and bool(value.shape)


def open_object(value: Any) -> ZarrArrays:
    """Returns the rows of an array.

    Raises:
        DataError: It has no rows, or holds what cannot be streamed.
    """
    root = getattr(value.store, "root", None)
    where = str(value.store_path)
    check_rows(where, {NAME: value.shape})
    check_kind(where, NAME, value.dtype)
    if isinstance(root, Path) and (root / value.path).is_dir():
        return ZarrFolder(root / value.path, {NAME: value})
    return ZarrArrays(where, {NAME: value})
