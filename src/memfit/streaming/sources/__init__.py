"""Kinds of data, one small module each, and which of them reads what a user gives.

A module for a kind of file has `open_file(path) -> Source` and is listed below by the ending of
the names; many files become one source here. A module for objects or folders has `accepts(value)`
and `open_object(value)` or `open_folder(path)`. Those that can read some columns only take their
names as a second argument. A module is imported when it is needed, so that what it needs itself
is, too.
"""

import glob
import importlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from memfit.errors import DataError, DataNotFoundError, UsageError
from memfit.streaming.data.source import Source
from memfit.streaming.files.remote import RemotePath, find_files, locate
from memfit.streaming.views.columns import Selected
from memfit.streaming.views.concatenate import chain

_FILES = {
    ".npy": "npy",
    ".npz": "npz",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".csv.zst": "csv",
    ".csv.bz2": "csv",
    ".tsv": "csv",
    ".tsv.gz": "csv",
    ".tsv.zst": "csv",
    ".tsv.bz2": "csv",
    ".tfrecord": "tfrecord",
    ".tfrecords": "tfrecord",
    ".tfrecord.gz": "tfrecord",
    ".tfrecords.gz": "tfrecord",
    ".tar": "tar_shards",
    ".tar.gz": "tar_shards",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
}
_FOLDERS = ("store", "zarr", "image_folder")
# These read no more than the columns that are asked for.
_BY_COLUMN = frozenset({"npz", "parquet", "arrow", "hdf5", "zarr", "tfrecord", "hugging_face"})
# These are read where they are, in any file system that pyarrow knows.
_REMOTE = frozenset({"parquet", "arrow", "csv"})
# These decode pictures.
_WITH_PICTURES = frozenset({"image_folder", "tar_shards"})
# An object may be of several kinds: the first that takes it.
_OBJECTS = (
    *("mapped", "hdf5_dataset", "zarr_array", "arrays"),
    *("sql", "hugging_face", "tf_data", "by_index", "iterated"),
)
_ELSEWHERE = {
    "npy": "memfit.streaming.files.npy",
    "mapped": "memfit.streaming.files.mapped",
    "store": "memfit.streaming.store.format",
}
_GLOB = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class _Asked:
    """How a user wants data to be read.

    Attributes:
        columns: The columns to read; all of them if `None`.
        image_size: Height and width of pictures.
        filesystem: Where paths are; on this machine if `None`.
    """

    columns: Sequence[str] | None
    image_size: tuple[int, int] | None
    filesystem: Any


def open_source(
    value: Any,
    columns: Sequence[str] | None = None,
    image_size: tuple[int, int] | None = None,
    filesystem: Any = None,
) -> Source:
    """Returns the source for a path, a URI, a glob, a folder, a list of these or an object.

    Args:
        value: What to open.
        columns: The columns to read; all of them if `None`.
        image_size: Height and width that pictures are resized to.
        filesystem: A `pyarrow.fs.FileSystem` that paths are in.

    Raises:
        DataNotFoundError: There is nothing at this path.
        DataError: The data cannot be streamed as it is.
        UsageError: This is no kind of data that memfit knows.
    """
    asked = _Asked(columns, image_size, filesystem)
    if isinstance(value, str | os.PathLike):
        return _open_located(locate(value, filesystem), asked)
    if isinstance(value, list):
        if not value:
            raise UsageError("There is nothing to stream. Received: an empty list.")
        return _open_all(value, asked)
    for name in _OBJECTS:
        module = _load(name)
        if module.accepts(value):
            return _open(name, module.open_object, value, asked)
    raise UsageError(
        f"Cannot stream this. Received: a {type(value).__name__}. Expected a path, a glob, a list "
        "of paths, an array, an object that gives rows by number or one by one, a function that "
        "gives them, a query, or a tuple (features, labels) of any of these."
    )


def _open_all(values: Sequence[Any], asked: _Asked) -> Source:
    names = [
        str(one) if isinstance(one, str | os.PathLike) else f"part {at + 1}"
        for at, one in enumerate(values)
    ]
    how = (asked.columns, asked.image_size, asked.filesystem)
    return chain([open_source(one, *how) for one in values], names)


def _open_located(path: Path | RemotePath, asked: _Asked) -> Source:
    if isinstance(path, Path):
        return _open_path(path, asked)
    paths = find_files(path)
    if paths is None:
        return _open_remote(path, asked)
    known = [one for one in paths if _ending(one) is not None]
    if not known:
        raise DataNotFoundError(
            f"No file matches {path}. Check the path; expected names that end in "
            f"{', '.join(_FILES)}."
        )
    return chain([_open_remote(one, asked) for one in known], [str(one) for one in known])


def _open_remote(path: RemotePath, asked: _Asked) -> Source:
    kind = _kind_of(path)
    if kind not in _REMOTE:
        raise UsageError(
            f"Cannot stream {path} where it is: of files in other places, Parquet, Arrow, Feather "
            "and CSV files can be. Copy it to this machine first."
        )
    return _open(kind, _load(kind).open_file, path, asked)


def _open_path(path: Path, asked: _Asked) -> Source:
    if path.is_dir():
        return _open_folder(path, asked)
    if not path.exists() and _GLOB & set(str(path)):
        paths = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207  # absolute ones too
        if not paths:
            raise DataNotFoundError(f"No file matches {path}. Check the pattern.")
        return _open_all(paths, asked)
    kind = _kind_of(path)
    return _open(kind, _load(kind).open_file, path, asked)


def _open_folder(folder: Path, asked: _Asked) -> Source:
    for name in _FOLDERS:
        module = _load(name)
        if module.accepts(folder):
            return _open(name, module.open_folder, folder, asked)
    paths = sorted(one for one in folder.iterdir() if _ending(one) is not None)
    if not paths:
        raise DataError(
            f"{folder} holds no file that can be streamed. Expected files that end in "
            f"{', '.join(_FILES)}, a folder that memfit.ingest() wrote, or subfolders of pictures."
        )
    return _open_all(paths, asked)


def _open(kind: str, opener: Callable[..., Any], value: Any, asked: _Asked) -> Source:
    if kind in _BY_COLUMN:
        return cast("Source", opener(value, asked.columns))
    if kind in _WITH_PICTURES:
        return _select(opener(value, asked.image_size), asked.columns)
    return _select(opener(value), asked.columns)


def _select(source: Source, columns: Sequence[str] | None) -> Source:
    return source if columns is None else Selected(source, columns)


def _kind_of(path: Path | RemotePath) -> str:
    ending = _ending(path)
    if ending is None:
        raise UsageError(
            f"Cannot tell what kind of data {path} is. Expected a name that ends in "
            f"{', '.join(_FILES)}."
        )
    return _FILES[ending]


def _ending(path: Path | RemotePath) -> str | None:
    return next((one for one in _FILES if path.name.lower().endswith(one)), None)


def _load(name: str) -> Any:
    return importlib.import_module(_ELSEWHERE.get(name, f"{__name__}.{name}"))
