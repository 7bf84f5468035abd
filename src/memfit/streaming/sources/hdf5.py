"""HDF5 files: a column a dataset; plain ones are read as they lie in the file, others by chunks."""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memfit.errors import DataError
from memfit.streaming.data.reading import pick
from memfit.streaming.data.source import Column, Source, Values
from memfit.streaming.files.local import DataFile
from memfit.streaming.files.npy import ArrayLocation, Npy
from memfit.streaming.files.optional_packages import load
from memfit.streaming.sources.chunked import ChunkedArray, check_rows, group_edges
from memfit.streaming.sources.row_groups import RowGroupSource

# A chunk as it is stored and decompressed.
_DECODING = 2


class Hdf5Source(RowGroupSource):
    """Datasets of which some are stored in chunks.

    Args:
        file: Where they are.
        arrays: What is known of each, by its name.
    """

    # The HDF5 library lets nothing in the process write to a file that is open.
    stays_open = False

    def __init__(self, file: DataFile, arrays: Mapping[str, ChunkedArray]) -> None:
        self._file = file
        self._opened: Any = None
        self._opening = threading.Lock()
        schema = tuple(
            Column(name, one.dtype.newbyteorder("="), one.shape[1:]) for name, one in arrays.items()
        )
        groups = group_edges(list(arrays.values()))
        scratch_bytes = max(
            int(groups[1]) * one.row_bytes + _DECODING * one.chunk_bytes for one in arrays.values()
        )
        super().__init__(schema, groups, scratch_bytes)

    def fingerprint(self) -> str:
        """Returns a text made of the file's size and samples of it."""
        sample = self._file.sample()
        self._file.close()
        return f"{sample[:16].hex()}:{','.join(one.name for one in self.schema)}"

    def check(self) -> None:
        """Raises if the file was changed."""
        self._file.check()

    def close(self) -> None:
        """Lets go of the open file; the next read opens it again."""
        with self._opening:
            if self._opened is not None:
                self._opened.close()
            self._opened = None

    def decode(self, group: int) -> Iterator[tuple[str, Values]]:
        """Gives the datasets, a part at a time."""
        start, stop = self._edges[group], self._edges[group + 1]
        for column in self.schema:
            values = np.empty((stop - start, *column.shape), column.dtype)
            with self._opening, reading(self._file, f"rows {start} to {stop} of {column.name!r}"):
                if self._opened is None:
                    self._opened = _open(self._file.path)
                self._opened[column.name].read_direct(values, np.s_[start:stop])
            yield column.name, values


def open_file(path: Path, columns: Sequence[str] | None = None) -> Source:
    """Returns the datasets of a file, which must have the same number of rows.

    Datasets inside groups are called by their path, as in `"train/x"`; single values are left out.

    Raises:
        DataError: It cannot be read, or its datasets differ in rows.
    """
    h5py = load("h5py", "HDF5 files", "hdf5")

    def find(opened: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def visit(name: str, value: Any) -> None:
            if isinstance(value, h5py.Dataset) and value.shape:
                found[name] = value

        opened.visititems(visit)
        return {name: found[name] for name in pick(columns, list(found), str(path))}

    return open_datasets(path, find)


def open_datasets(path: Path, find: Callable[[Any], Mapping[str, Any]]) -> Source:
    """Returns some datasets of a file, which must have the same number of rows.

    Args:
        path: The file.
        find: Returns the datasets by name, out of the open file.

    Raises:
        DataError: It cannot be read, or its datasets differ in rows.
    """
    file = DataFile(path)
    with reading(file, "its header"), _open(path) as opened:
        found = find(opened)
        arrays = {name: _describe_chunks(one) for name, one in found.items()}
        check_rows(str(path), {name: one.shape for name, one in arrays.items()})
        for name, one in arrays.items():
            _check_kind(path, name, one.dtype)
        offsets = {name: _find_offset(one) for name, one in found.items()}
    if any(offset is None for offset in offsets.values()):
        return Hdf5Source(file, arrays)
    return Npy(
        {
            name: (file, ArrayLocation(one.dtype, one.shape, offsets[name] or 0))
            for name, one in arrays.items()
        }
    )


@contextlib.contextmanager
def reading(file: DataFile, what: str) -> Iterator[None]:
    """Says which file cannot be read, and where."""
    try:
        yield
    except (OSError, RuntimeError, KeyError) as error:
        file.check()  # damaged, or rewritten meanwhile?
        raise DataError(
            f"{file.path} is not an HDF5 file that can be read: {what} is damaged or truncated "
            f"({error}). Write or copy it again."
        ) from None


def _open(path: Path) -> Any:
    h5py = load("h5py", "HDF5 files", "hdf5")
    # Without a cache: every chunk is read once. Without locks: several processes may train on
    # one file, and some file systems know none.
    try:
        return h5py.File(path, "r", rdcc_nbytes=0, locking=False)
    except OSError as error:
        if "locking" not in str(error):
            raise
        return h5py.File(path, "r", rdcc_nbytes=0)  # the script has it open, with locks


def _describe_chunks(dataset: Any) -> ChunkedArray:
    return ChunkedArray(dataset.dtype, dataset.shape, dataset.chunks)


def _find_offset(dataset: Any) -> int | None:
    """Where the values lie in the file, if they lie there one after another as they are."""
    is_plain = dataset.chunks is None and not dataset.external and not dataset.is_virtual
    return dataset.id.get_offset() if is_plain else None


def _check_kind(path: Path, name: str, dtype: np.dtype[Any]) -> None:
    if dtype.hasobject or dtype.fields is not None:
        what = "records" if dtype.fields is not None else "text or lists of varying length"
        raise DataError(
            f"Dataset {name!r} of {path} holds {what}, which cannot be streamed. Write numbers, or "
            "text of fixed length (dtype 'S10'), or leave it out with columns=[...]."
        )


def accepts_object(value: Any) -> bool:
    """Whether this is a dataset with a name, of a file on disk."""
    h5py = sys.modules.get("h5py")
    if h5py is None or not isinstance(value, h5py.Dataset):
        return False
    return not value or (value.name is not None and Path(value.file.filename).is_file())


def open_object(value: Any) -> Source:
    """Returns the rows of a dataset; they can be read also when its file is closed.

    Raises:
        DataError: Its file is closed already, or it holds what cannot be streamed.
    """
    if not value:
        raise DataError(
            "The file of this HDF5 dataset is closed. Make the stream while it is open, or give "
            'the path: memfit.stream("data.h5", columns=["x"], ...).'
        )
    if value.file.mode != "r":
        value.file.flush()
    return open_datasets(Path(value.file.filename), lambda _: {value.name.strip("/"): value})
