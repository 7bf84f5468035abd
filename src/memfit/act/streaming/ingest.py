"""`memfit.ingest`: data written once in a random order, so that every epoch is well mixed."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memfit.act.streaming.layout import open_data
from memfit.act.streaming.loader import check_number
from memfit.act.streaming.scattering import plan_scattering, scatter
from memfit.act.streaming.showing import showing
from memfit.act.streaming.source import Source, row_bytes
from memfit.errors import DataError, UsageError
from memfit.units import format_size, parse_size

# Headers, and what file systems keep for themselves.
_SPARE_SHARE = 1.02
_OWNER = "owner.pid"


def ingest(
    source: Any, folder: str | os.PathLike[str], *, budget: str = "512MB", seed: int = 0
) -> Path:
    """Writes data into a folder, its rows in a random order; every order is as likely.

    `memfit.stream` then reads large blocks from it, and batches are as good as drawn from all
    rows. The folder appears when it is complete: what is left of an earlier try that was killed is
    removed, and nothing is left behind on an error.

    Args:
        source: As for `memfit.stream`.
        folder: Where to write; it must not be there yet. It takes as much room as the rows.
        budget: About the most memory to use.
        seed: What the order is made from.

    Returns:
        The folder.

    Raises:
        DataNotFoundError: There is no such file.
        DataError: The data cannot be read as it is, or the disk is too small.
        BudgetError: The budget is too small for this data.
        UsageError: The folder is there already, or the seed is no number.

    Example:
    ```python
    memfit.ingest(("x.npy", "y.npy"), "cache/")
    data = memfit.stream("cache/", batch_size=256, shuffle=True)
    ```
    """
    check_number("seed", seed, 0)
    folder = Path(folder)
    if folder.exists():
        raise UsageError(
            f"{folder} is there already. Give another folder, or remove it to ingest anew."
        )
    opened, _ = open_data(source)
    scattering = plan_scattering(opened, parse_size(budget), seed)
    _check_room(opened, folder)
    with (
        _unfinished(folder) as unfinished,
        showing(2 * opened.num_rows, f"ingesting {folder.name}") as tell,
    ):
        scatter(scattering, unfinished, tell).write(unfinished)
        opened.check()
    return folder


def _check_room(source: Source, folder: Path) -> None:
    needed_bytes = source.num_rows * row_bytes(source.schema) * _SPARE_SHARE
    parent = next(one for one in folder.absolute().parents if one.exists())
    free_bytes = shutil.disk_usage(parent).free
    if needed_bytes > free_bytes:
        raise DataError(
            f"The disk is too small: the rows need {format_size(needed_bytes)}, and "
            f"{format_size(free_bytes)} are free in {parent}. Give a folder on a larger disk."
        )


@contextlib.contextmanager
def _unfinished(folder: Path) -> Iterator[Path]:
    """A folder beside the final one, which it becomes at the end; on an error it is removed."""
    unfinished = folder.absolute().with_name(f".{folder.name}.unfinished")
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    if unfinished.exists():
        _remove_left_over(unfinished)
    unfinished.mkdir()
    try:
        (unfinished / _OWNER).write_text(str(os.getpid()))
        yield unfinished
        (unfinished / _OWNER).unlink()
        unfinished.rename(folder)
        _sync(folder.absolute().parent)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _remove_left_over(unfinished: Path) -> None:
    import psutil

    try:
        owner = int((unfinished / _OWNER).read_text())
    except (OSError, ValueError):  # it was killed before it could say who it is
        owner = os.getpid()
    if owner != os.getpid() and psutil.pid_exists(owner):
        raise UsageError(
            f"Process {owner} is writing {unfinished} now. Wait for it, or end it first."
        )
    shutil.rmtree(unfinished)


def _sync(folder: Path) -> None:
    """Makes the new name of a folder outlive a crash of the machine, where that is possible."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
