"""Data that cannot be identified, such as what a generator gives: kept for one stream.

It is spooled when the stream is made and removed when the stream is forgotten or the process ends.
What a killed process left behind is removed by the next one.
"""

import contextlib
import os
import shutil
import uuid
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from memfit.errors import DataError
from memfit.streaming.data.ragged import Ragged
from memfit.streaming.data.source import Source, Values
from memfit.streaming.store.atomic_folder import find_abandoned
from memfit.streaming.store.cache_folder import ONCE, find_cache
from memfit.streaming.store.leases import lock
from memfit.streaming.store.spool import find_folder, spool
from memfit.units import format_size

# An endless generator must not fill the disk.
_MOST_SHARE = 0.5


def spool_once(
    batches: Iterator[Mapping[str, Values]], *, name: str, total: int | None = None
) -> Source:
    """Returns a source of the rows of all batches; they are on disk as long as it is there.

    Args:
        batches: Values of every column for some rows.
        name: What to call the data in messages and at the progress bar.
        total: How many rows there are, if that is known.

    Raises:
        DataError: A batch differs from the first, there are no rows, or the disk is too small.
    """
    _remove_left_over()
    key = f"once {uuid.uuid4()}"
    source = spool(_limited(batches, name), key, total=total, name=name)
    folder = find_folder(key)
    in_use = lock(folder / ONCE)
    weakref.finalize(source, _remove, folder, in_use, os.getpid())
    return source


def _limited(batches: Iterator[Mapping[str, Values]], name: str) -> Iterator[Mapping[str, Values]]:
    parent = next(one for one in (find_cache(), *find_cache().parents) if one.exists())
    most_bytes = _MOST_SHARE * shutil.disk_usage(parent).free
    size_bytes = num_rows = 0
    for batch in batches:
        columns = list(batch.values())
        size_bytes += sum(
            one.values.nbytes if isinstance(one, Ragged) else one.nbytes for one in columns
        )
        num_rows += len(columns[0]) if columns else 0
        if size_bytes > most_bytes:
            raise DataError(
                f"{name} has more than {num_rows} rows, {format_size(size_bytes)}: half of the "
                f"free space in {parent}. If it is endless, limit it: lambda: "
                "itertools.islice(make_rows(), 1_000_000). Otherwise set XDG_CACHE_HOME to a "
                "folder on a larger disk."
            )
        yield batch


def _remove(folder: Path, in_use: IO[bytes], owner: int) -> None:
    if os.getpid() == owner:  # a forked child has the object, too
        in_use.close()
        shutil.rmtree(folder, ignore_errors=True)


def _remove_left_over() -> None:
    for folder in find_abandoned(find_cache()):
        shutil.rmtree(folder, ignore_errors=True)
    for path in find_cache().glob(f"*/{ONCE}"):
        with contextlib.suppress(OSError):  # in use, or removed by another process meanwhile
            lock(path).close()
            shutil.rmtree(path.parent)
