"""Folders that appear when they are complete, room for them on the disk, and a bar meanwhile."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from memfit.errors import DataError, UsageError
from memfit.units import format_size

# Headers, and what file systems keep for themselves.
_SPARE_SHARE = 1.02
_OWNER = "owner.pid"


def check_room(
    needed_bytes: float, folder: Path, advice: str = "Give a folder on a larger disk"
) -> None:
    """Raises `DataError` if the disk has no room for so many bytes in a folder to be made."""
    needed_bytes *= _SPARE_SHARE
    parent = next(one for one in folder.absolute().parents if one.exists())
    free_bytes = shutil.disk_usage(parent).free
    if needed_bytes > free_bytes:
        raise DataError(
            f"The disk is too small: the rows need {format_size(needed_bytes)}, and "
            f"{format_size(free_bytes)} are free in {parent}. {advice}."
        )


@contextlib.contextmanager
def unfinished(folder: Path) -> Iterator[Path]:
    """A folder beside the final one, which it becomes at the end; on an error it is removed.

    Raises:
        UsageError: Another process is writing it.
    """
    beside = _beside(folder)
    beside.parent.mkdir(parents=True, exist_ok=True)
    if beside.exists():
        owner = find_writer(folder)
        if owner is not None:
            raise UsageError(
                f"Process {owner} is writing {beside} now. Wait for it, or end it first."
            )
        shutil.rmtree(beside)
    beside.mkdir()
    try:
        (beside / _OWNER).write_text(str(os.getpid()))
        yield beside
        (beside / _OWNER).unlink()
        beside.rename(folder)
        _sync(folder.absolute().parent)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def find_writer(folder: Path) -> int | None:
    """Returns the other process that is writing a folder now."""
    import psutil

    try:
        owner = int((_beside(folder) / _OWNER).read_text())
    except (OSError, ValueError):  # it was killed before it could say who it is
        return None
    return owner if owner != os.getpid() and psutil.pid_exists(owner) else None


def find_abandoned(parent: Path) -> Iterator[Path]:
    """Gives the unfinished folders whose process is gone."""
    import psutil

    for path in parent.glob(f".*.unfinished/{_OWNER}"):
        with contextlib.suppress(OSError, ValueError):
            if not psutil.pid_exists(int(path.read_text())):
                yield path.parent


def _beside(folder: Path) -> Path:
    return folder.absolute().with_name(f".{folder.name}.unfinished")


def _sync(folder: Path) -> None:
    """Makes the new name of a folder outlive a crash of the machine, where that is possible."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
