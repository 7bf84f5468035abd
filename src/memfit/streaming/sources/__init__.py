"""One file a format or kind of object, and which of them reads what a user gives."""

import glob
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from memfit.errors import DataError, DataNotFoundError, UsageError
from memfit.streaming.data.reading import ReadOptions
from memfit.streaming.data.source import Source
from memfit.streaming.files.remote import RemotePath, find_files, locate
from memfit.streaming.sources.formats import (
    ENDINGS,
    FOLDERS,
    OBJECTS,
    Format,
    find_format,
    list_remote,
)
from memfit.streaming.views.columns import ColumnSelection
from memfit.streaming.views.concatenate import concatenate_sources

_GLOB = frozenset("*?[")
_ALL = ReadOptions()


def open_source(value: Any, options: ReadOptions = _ALL) -> Source:
    """Returns the source for a path, a URI, a glob, a folder, a list of these or an object.

    Args:
        value: What to open.
        options: Which columns to read, and how.

    Raises:
        DataNotFoundError: There is nothing at this path.
        DataError: The data cannot be streamed as it is.
        UsageError: memfit cannot read this kind of data.
    """
    if isinstance(value, str | os.PathLike):
        return _open_located(locate(value, options.filesystem), options)
    if isinstance(value, list):
        if not value:
            raise UsageError("There is nothing to stream. Received: an empty list.")
        return _open_all(value, options)
    for one in OBJECTS:
        module = one.load()
        if module.accepts_object(value):
            return _open(one, module.open_object, value, options)
    raise UsageError(
        f"Cannot stream this. Received: a {type(value).__name__}. Expected a path, a glob, a list "
        "of paths, an array, an object that gives rows by number or one by one, a function that "
        "gives them, a query, or a tuple (features, labels) of any of these."
    )


def _open_all(values: Sequence[Any], options: ReadOptions) -> Source:
    names = [
        str(one) if isinstance(one, str | os.PathLike) else f"part {at + 1}"
        for at, one in enumerate(values)
    ]
    return concatenate_sources([open_source(one, options) for one in values], names)


def _open_located(path: Path | RemotePath, options: ReadOptions) -> Source:
    if isinstance(path, Path):
        return _open_path(path, options)
    paths = find_files(path)
    if paths is None:
        return _open_remote(path, options)
    known = [one for one in paths if find_format(one.name) is not None]
    if not known:
        raise DataNotFoundError(
            f"No file matches {path}. Check the path; expected names that end in "
            f"{', '.join(ENDINGS)}."
        )
    return concatenate_sources(
        [_open_remote(one, options) for one in known], [str(one) for one in known]
    )


def _open_remote(path: RemotePath, options: ReadOptions) -> Source:
    found = _format_of(path)
    if not found.is_remote:
        raise UsageError(
            f"Cannot stream {path} from another machine: there memfit reads only "
            f"{list_remote()} files. Copy it to this machine first."
        )
    return _open(found, found.load().open_file, path, options)


def _open_path(path: Path, options: ReadOptions) -> Source:
    if path.is_dir():
        return _open_folder(path, options)
    if not path.exists() and _GLOB & set(str(path)):
        paths = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207  # absolute ones too
        if not paths:
            raise DataNotFoundError(f"No file matches {path}. Check the pattern.")
        return _open_all(paths, options)
    found = _format_of(path)
    return _open(found, found.load().open_file, path, options)


def _open_folder(folder: Path, options: ReadOptions) -> Source:
    for one in FOLDERS:
        module = one.load()
        if module.accepts_folder(folder):
            return _open(one, module.open_folder, folder, options)
    paths = sorted(one for one in folder.iterdir() if find_format(one.name) is not None)
    if not paths:
        raise DataError(
            f"{folder} holds no file that can be streamed. Expected files that end in "
            f"{', '.join(ENDINGS)}, a folder that memfit.ingest() wrote, or subfolders of pictures."
        )
    return _open_all(paths, options)


def _open(found: Format, opener: Callable[..., Any], value: Any, options: ReadOptions) -> Source:
    arguments: dict[str, Any] = {}
    if found.reads_columns:
        arguments["columns"] = options.columns
    if found.has_pictures:
        arguments["image_size"] = options.image_size
    source = cast("Source", opener(value, **arguments))
    if options.columns is None or found.reads_columns:
        return source
    return ColumnSelection(source, options.columns)


def _format_of(path: Path | RemotePath) -> Format:
    found = find_format(path.name)
    if found is None:
        raise UsageError(
            f"Cannot tell the format of {path}. Expected a name that ends in {', '.join(ENDINGS)}."
        )
    return found
