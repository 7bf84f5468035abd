"""Data that can only be read from front to back, written once to a cache that is read at any row.

Compressed files, queries and generators are such data. Their rows are kept in their order, in the
format of `memfit.ingest`, below `~/.cache/memfit/streams` (or `$XDG_CACHE_HOME`).
"""

import contextlib
import dataclasses
import errno
import hashlib
import os
import shutil
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from memfit.errors import DataError
from memfit.messages import show_progress
from memfit.streaming.data.ragged import Ragged
from memfit.streaming.data.source import Array, Column, Ranges, Source, Values
from memfit.streaming.files.local import DataFile
from memfit.streaming.files.remote import RemoteFile
from memfit.streaming.store.atomic_folder import find_writer, unfinished
from memfit.streaming.store.cache_folder import ADVICE, DiskRoom, find_cache
from memfit.streaming.store.format import Checksum, Manifest, Store, file_names
from memfit.streaming.store.leases import begin_use
from memfit.streaming.store.npy_files import GrowingFile

# Another one for another way of writing: what an older memfit wrote is then not used.
_VERSION = 1
_POLL_S = 0.1
_OFFSET = np.dtype(np.int64)
# One thread of a process writes at a time; other processes are seen by what they write.
_LOCK = threading.RLock()


class CachedRows:
    """Rows of a cache that stands for other data.

    Args:
        store: The cache.
        check: Raises if the other data was changed.
        categories: What the values of some columns stand for.
    """

    groups = None
    is_shuffled = False
    scratch_bytes = 0

    def __init__(
        self,
        store: Store,
        check: Callable[[], None],
        categories: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    ) -> None:
        self._store = store
        self._check = check
        self.schema = tuple(
            dataclasses.replace(one, categories=categories.get(one.name)) for one in store.schema
        )
        self.num_rows = store.num_rows

    def fingerprint(self) -> str:
        """Returns a text made of the checksums of all rows."""
        return self._store.fingerprint()

    def check(self) -> None:
        """Raises if the data or its cache was changed."""
        self._check()
        self._store.check()

    def close(self) -> None:
        """Lets go of open files; the next read opens them again."""
        self._store.close()

    def read(self, start: int, stop: int) -> dict[str, Values]:
        """Returns rows."""
        return self._store.read(start, stop)

    def read_lengths(self, start: int, stop: int) -> dict[str, npt.NDArray[np.int64]]:
        """Returns how long the sequences of some rows are."""
        return self._store.read_lengths(start, stop)

    def read_into(self, ranges: Ranges, into: Mapping[str, Array]) -> None:
        """Reads rows into arrays."""
        self._store.read_into(ranges, into)


def spool(
    batches: Iterator[Mapping[str, Values]],
    key: str,
    *,
    total: int | None = None,
    name: str = "data",
    check: Callable[[], None] = lambda: None,
    categories: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> Source:
    """Returns a source of the rows of all batches, which are written to the cache unless they are.

    Args:
        batches: Values of every column for some rows; begun only if they are not in the cache.
            Columns, types and shapes are those of the first batch; text may get longer.
        key: Another text for other data; see `make_key`.
        total: How many rows there are, if that is known.
        name: What to call the data in messages and at the progress bar.
        check: Raises if the data was changed since `key` was made.
        categories: What the values of some columns stand for.

    Raises:
        DataError: A batch differs from the first, there are no rows, or the disk is too small.
    """
    folder = find_folder(key)
    end_use = begin_use(folder)
    try:
        with _LOCK:
            store = _reuse(folder)
            while store is None and find_writer(folder) is not None:
                time.sleep(_POLL_S)  # another process writes the same rows: they are ours, too
                store = _reuse(folder)
            if store is None:
                _write(batches, folder, total=total, name=name, check=check)
                store = Store(folder)
    except BaseException:
        end_use()
        raise
    source = CachedRows(store, check, categories)
    weakref.finalize(source, end_use)
    return source


def find_folder(key: str) -> Path:
    """Returns the folder that holds the data with this key."""
    return find_cache() / hashlib.sha256(f"{_VERSION} {key}".encode()).hexdigest()[:32]


def make_key(files: Sequence[DataFile | RemoteFile], *settings: object) -> str:
    """Returns a key for files, and for whatever decides how they are read.

    A file that was written again has another key even if all that was sampled of it is the same.
    """
    digest = hashlib.sha256(repr(settings).encode())
    for file in files:
        digest.update(file.identity())
    return digest.hexdigest()


def _reuse(folder: Path) -> Store | None:
    if not folder.exists():
        return None
    try:
        store = Store(folder)
        with contextlib.suppress(OSError):
            os.utime(folder)  # what was used last is removed last
        return store
    except (DataError, OSError):  # damaged by somebody: it is only a cache
        shutil.rmtree(folder)
        return None


def _write(
    batches: Iterator[Mapping[str, Values]],
    folder: Path,
    *,
    total: int | None,
    name: str,
    check: Callable[[], None],
) -> None:
    try:
        with unfinished(folder) as beside, show_progress(total, f"reading {name} once") as tell:
            _write_rows(batches, beside, total, name, tell).write(beside)
            check()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
            raise
        raise DataError(
            f"Cannot keep {name} in {folder.parent}: {error.strerror}. {ADVICE}."
        ) from error


def _write_rows(
    batches: Iterator[Mapping[str, Values]],
    folder: Path,
    total: int | None,
    name: str,
    tell: Callable[[int], None],
) -> Manifest:
    columns: dict[str, _Spooling] = {}
    room = DiskRoom(name)
    num_rows = 0
    with contextlib.ExitStack() as stack:
        for at, batch in enumerate(batches, start=1):
            where = f"batch {at} of {name}"
            batch_rows = _count_rows(batch, where)
            if batch_rows == 0:
                continue
            if not columns:
                room.check((total or 0) * _size(batch) / batch_rows)
                columns = {
                    key: _Spooling(index, key, values, folder)
                    for index, (key, values) in enumerate(batch.items())
                }
                for column in columns.values():
                    stack.callback(column.close)
            if list(batch) != list(columns):
                raise DataError(
                    f"The columns of {where} differ: expected {', '.join(columns)}; found "
                    f"{', '.join(batch)}. Give the same columns in every batch."
                )
            room.take(_size(batch))
            for key, values in batch.items():
                columns[key].add(values, where)
            num_rows += batch_rows
            tell(batch_rows)
        if num_rows == 0:
            raise DataError(f"{name} has no rows. Expected one row or more.")
        finished = [column.finish(num_rows) for column in columns.values()]
    schema = tuple(column for column, _ in finished)
    return Manifest(num_rows, False, schema, tuple(one for _, many in finished for one in many))


class _Spooling:
    """One column while it is written: its values, or the steps of sequences and where they begin.

    Args:
        index: Which column it is.
        name: Its name.
        values: Some of its values.
        folder: Where its files go.
    """

    def __init__(self, index: int, name: str, values: Values, folder: Path) -> None:
        first = values.values if isinstance(values, Ragged) else values
        mean_length = 1.0 if isinstance(values, Ragged) else None
        self._column = Column(name, first.dtype.newbyteorder("="), first.shape[1:], mean_length)
        paths = [folder / one for one in file_names(index, self._column)]
        self._values = GrowingFile(paths[0], _plain(first, name).dtype, first.shape[1:])
        self._offsets: GrowingFile | None = None
        if isinstance(values, Ragged):
            self._offsets = GrowingFile(paths[1], _OFFSET, ())
            self._offsets.append(np.zeros(1, _OFFSET))

    def add(self, values: Values, where: str) -> None:
        """Writes the values of a batch."""
        if isinstance(values, Ragged):
            steps = _plain(values.values[: values.offsets[-1]], self._column.name)
            self._check_kind(steps, where, is_ragged=True)
            assert self._offsets is not None  # noqa: S101  # just checked
            self._offsets.append(values.offsets[1:] + self._values.num_rows)
            self._values.append(steps)
        else:
            rows = _plain(values, self._column.name)
            self._check_kind(rows, where, is_ragged=False)
            self._values.append(rows)

    def finish(self, num_rows: int) -> tuple[Column, list[Checksum]]:
        """Completes the files; returns what they hold."""
        files = [one for one in (self._values, self._offsets) if one is not None]
        mean_length = None if self._offsets is None else self._values.num_rows / num_rows
        final = Column(self._column.name, self._values.dtype, self._column.shape, mean_length)
        return final, [one.finish() for one in files]

    def close(self) -> None:
        """Closes its files as they are."""
        for file in (self._values, self._offsets):
            if file is not None:
                file.close()

    def _check_kind(self, found: Array, where: str, *, is_ragged: bool) -> None:
        expected = self._values.dtype
        is_same_type = found.dtype.newbyteorder("=") == expected or (
            found.dtype.kind == expected.kind and expected.kind in "US"
        )
        is_same_shape = (found.shape[1:], is_ragged) == (
            self._column.shape,
            self._column.is_ragged,
        )
        if not (is_same_type and is_same_shape):
            kinds = ("", "sequences of ")
            raise DataError(
                f"Column {self._column.name!r} of {where} is {found.dtype} {kinds[is_ragged]}"
                f"{found.shape[1:]}; in the first batch it is {expected} "
                f"{kinds[self._column.is_ragged]}{self._column.shape}. Give the same type and "
                "shape in every batch."
            )


def _plain(values: Array, name: str) -> Array:
    """Values that can be written: text that pandas and others keep as objects becomes an array."""
    if not values.dtype.hasobject:
        return values
    if all(isinstance(one, str) for one in values.flat):
        return values.astype(str)
    found = sorted({type(one).__name__ for one in values.flat})
    raise DataError(
        f"Column {name!r} holds Python objects ({', '.join(found)}). Expected numbers or text: "
        "turn it into an array of one type first."
    )


def _count_rows(batch: Mapping[str, Values], where: str) -> int:
    lengths = {name: len(values) for name, values in batch.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} has {number}" for name, number in lengths.items())
        raise DataError(
            f"The columns of {where} have different numbers of rows: {found}. Give the same number "
            "of rows in each."
        )
    return next(iter(lengths.values()), 0)


def _size(batch: Mapping[str, Values]) -> int:
    return sum(
        one.values.nbytes + one.offsets.nbytes if isinstance(one, Ragged) else one.nbytes
        for one in batch.values()
    )
