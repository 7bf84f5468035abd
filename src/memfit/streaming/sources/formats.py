"""The formats that can be streamed: one row each, in the order in which they are tried.

A new format is a module and a row. The module has `open_file(path)` for a file, `accepts_folder`
and `open_folder` for a folder, or `accepts_object` and `open_object` for an object of the user's.
A module is imported when it is needed, so that the packages that it needs are, too.
"""

import importlib
from dataclasses import dataclass
from typing import Any, Literal

_SOURCES = "memfit.streaming.sources"


@dataclass(frozen=True, slots=True)
class Format:
    """One format.

    Attributes:
        name: What messages call it.
        kind: What a user gives: the path of a file, that of a folder, or an object.
        module: What reads it.
        endings: How the names of its files end.
        reads_columns: Whether it reads only the columns that are asked for: its opener has the
            argument `columns`.
        is_remote: Whether it is read where it is, in any file system that pyarrow can reach.
        has_pictures: Whether it decodes pictures: its opener has the argument `image_size`.
    """

    name: str
    kind: Literal["file", "folder", "object"]
    module: str
    endings: tuple[str, ...] = ()
    reads_columns: bool = False
    is_remote: bool = False
    has_pictures: bool = False

    def load(self) -> Any:
        """Returns the module that reads it."""
        return importlib.import_module(self.module)


def _compressed(*endings: str, by: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{one}{suffix}" for one in endings for suffix in ("", *by))


FORMATS = (
    Format("NumPy", "file", "memfit.streaming.files.npy", (".npy",)),
    Format("NumPy archive", "file", f"{_SOURCES}.npz", (".npz",), reads_columns=True),
    Format(
        "CSV",
        "file",
        f"{_SOURCES}.csv",
        _compressed(".csv", ".tsv", by=(".gz", ".zst", ".bz2")),
        is_remote=True,
    ),
    Format(
        "TFRecord",
        "file",
        f"{_SOURCES}.tfrecord",
        _compressed(".tfrecord", ".tfrecords", by=(".gz",)),
        reads_columns=True,
        has_pictures=True,
    ),
    Format(
        "tar shard",
        "file",
        f"{_SOURCES}.tar_shards",
        _compressed(".tar", by=(".gz",)),
        has_pictures=True,
    ),
    Format(
        "Parquet",
        "file",
        f"{_SOURCES}.parquet",
        (".parquet",),
        reads_columns=True,
        is_remote=True,
    ),
    Format(
        "Arrow",
        "file",
        f"{_SOURCES}.arrow",
        (".arrow", ".feather"),
        reads_columns=True,
        is_remote=True,
    ),
    Format("HDF5", "file", f"{_SOURCES}.hdf5", (".h5", ".hdf5"), reads_columns=True),
    Format("memfit.ingest() folder", "folder", "memfit.streaming.store.format"),
    Format("Zarr", "folder", f"{_SOURCES}.zarr", reads_columns=True),
    Format("folder of pictures", "folder", f"{_SOURCES}.image_folder", has_pictures=True),
    # An object may be of several kinds: the first that takes it.
    Format("array that NumPy maps", "object", "memfit.streaming.files.npy"),
    Format("HDF5 dataset", "object", f"{_SOURCES}.hdf5"),
    Format("Zarr array", "object", f"{_SOURCES}.zarr"),
    Format("array", "object", f"{_SOURCES}.arrays"),
    Format("query", "object", f"{_SOURCES}.sql"),
    Format("Hugging Face dataset", "object", f"{_SOURCES}.hugging_face", reads_columns=True),
    Format("tf.data dataset", "object", f"{_SOURCES}.tf_data"),
    Format("rows by number", "object", f"{_SOURCES}.by_index"),
    Format("iterable", "object", f"{_SOURCES}.iterables"),
)
FOLDERS = tuple(one for one in FORMATS if one.kind == "folder")
OBJECTS = tuple(one for one in FORMATS if one.kind == "object")
ENDINGS = tuple(ending for one in FORMATS for ending in one.endings)


def find_format(name: str) -> Format | None:
    """Returns the format of a file with this name; `None` if none has such an ending.

    Example:
    >>> find_format("rides-1.CSV.gz").name
    'CSV'
    """
    name = name.lower()
    return next((one for one in FORMATS if name.endswith(one.endings)), None)


def list_remote() -> str:
    """Returns the names of the formats that are read where they are, in words.

    Example:
    >>> list_remote()
    'CSV, Parquet and Arrow'
    """
    *names, last = (one.name for one in FORMATS if one.is_remote)
    return f"{', '.join(names)} and {last}"
