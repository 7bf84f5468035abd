"""Folders that appear when they are complete, room for them on the disk, and a bar meanwhile."""

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from memfit.errors import DataError, UsageError
from memfit.streaming.store.leases import HAS_LOCKS, lock, locked, unlock
from memfit.units import format_size

# Headers, and what file systems keep for themselves.
_SPARE_SHARE = 1.02
OWNER = "owner.pid"
# Who only looks whether a folder is in use has it for a moment.
_TRIES = 5
_RETRY_S = 0.05


def check_room(needed_bytes: float, folder: Path) -> None:
    """Raises `DataError` if the disk has no room for so many bytes in a folder to be made."""
    needed_bytes *= _SPARE_SHARE
    parent = next(one for one in folder.absolute().parents if one.exists())
    free_bytes = shutil.disk_usage(parent).free
    if needed_bytes > free_bytes:
        raise DataError(
            f"The disk is too small: the rows need {format_size(needed_bytes)}, and "
            f"{format_size(free_bytes)} are free in {parent}. Give a folder on a larger disk."
        )


@contextlib.contextmanager
def unfinished(folder: Path, *, keeps: bool = False) -> Iterator[Path]:
    """A folder beside the final one, which it becomes at the end; on an error it is removed.

    Args:
        folder: The final one.
        keeps: Whether what a killed process has left in it is kept, and what is in it when a
            user interrupts this one.

    Raises:
        UsageError: Another process is writing it.
    """
    beside = find_unfinished(folder)
    beside.parent.mkdir(parents=True, exist_ok=True)
    owner = _claim(beside)
    try:
        if not keeps:
            clear(beside)
        (beside / OWNER).write_text(str(os.getpid()))
        yield beside
        (beside / OWNER).unlink()
        beside.rename(folder)
        _sync(folder.absolute().parent)
    except BaseException as error:
        if not keeps or isinstance(error, Exception):
            shutil.rmtree(beside, ignore_errors=True)
        raise
    finally:
        unlock(owner)


def clear(beside: Path) -> None:
    """Removes what is in an unfinished folder."""
    for path in beside.iterdir():
        if path.name != OWNER:
            path.unlink()


def find_writer(folder: Path) -> int | None:
    """Returns the other process that is writing a folder now."""
    import psutil

    path = find_unfinished(folder) / OWNER
    try:
        owner = int(path.read_text())
        if owner == os.getpid() or not psutil.pid_exists(owner):
            return None
        if HAS_LOCKS:  # or another process has its number by now
            with locked(path, is_shared=True):
                return None
    except BlockingIOError:
        return owner
    except (OSError, ValueError):  # it was killed before it could say who it is
        return None
    return owner


def find_unfinished(folder: Path) -> Path:
    """Returns where a folder is while it is written."""
    return folder.absolute().with_name(f".{folder.name}.unfinished")


def find_size(folder: Path) -> int:
    """Returns how much of the disk the files of a folder take; 0 if it is not there."""
    total = 0
    with contextlib.suppress(OSError):  # removed meanwhile
        for path in folder.iterdir():
            found = path.stat()
            # Files may have holes.
            total += min(found.st_size, getattr(found, "st_blocks", found.st_size) * 512)
    return total


def find_abandoned(parent: Path) -> Iterator[Path]:
    """Gives the unfinished folders whose process is gone."""
    import psutil

    for path in parent.glob(f".*.unfinished/{OWNER}"):
        with contextlib.suppress(OSError, ValueError):  # locked: it is there
            with locked(path):
                pass
            if HAS_LOCKS or not psutil.pid_exists(int(path.read_text())):
                yield path.parent


def _claim(beside: Path) -> IO[bytes]:
    """Locks a folder for this process, and makes it if it is not there."""
    for _ in range(_TRIES):
        beside.mkdir(exist_ok=True)
        with contextlib.suppress(BlockingIOError, FileNotFoundError):
            owner = lock(beside / OWNER)
            with contextlib.suppress(FileNotFoundError):
                if (beside / OWNER).stat().st_ino == os.fstat(owner.fileno()).st_ino:
                    return owner
            owner.close()  # who had it was done meanwhile, and the folder has its name now
        time.sleep(_RETRY_S)
    raise UsageError(
        f"Process {(beside / OWNER).read_text()} is writing {beside} now. Wait for it, or end it "
        "first."
    )


def _sync(folder: Path) -> None:
    """Makes the new name of a folder outlive a crash of the machine, where that is possible."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
