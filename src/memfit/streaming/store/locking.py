"""Files that say who uses a folder: locked as long as a process has them open."""

import contextlib
import errno
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import IO

# Windows has others, and does not remove a file that is open anyway.
HAS_LOCKS = importlib.util.find_spec("fcntl") is not None
# Some file systems of networks know no locks.
_NO_LOCKS = (errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS)


def lock(path: Path, *, is_shared: bool = False, waits: bool = False) -> IO[bytes]:
    """Returns a file that is locked until it is closed, which the end of a process does, too.

    Args:
        path: The file; it is made if it is not there.
        is_shared: Whether others may lock it in this way at the same time.
        waits: Whether to wait until nobody else has it.

    Raises:
        BlockingIOError: Somebody else has locked it.
    """
    file = path.open("ab")
    if not HAS_LOCKS:
        return file
    import fcntl

    kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
    try:
        fcntl.flock(file, kind if waits else kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return file
        file.close()
        raise
    return file


def unlock(file: IO[bytes]) -> None:
    """Ends a lock, also if a child that was forked meanwhile has the file open, too."""
    if HAS_LOCKS:
        import fcntl

        with contextlib.suppress(OSError):  # it knows no locks
            fcntl.flock(file, fcntl.LOCK_UN)
    file.close()


@contextlib.contextmanager
def locked(path: Path, *, is_shared: bool = False, waits: bool = False) -> Iterator[None]:
    """A file that is locked for a moment; see `lock`."""
    file = lock(path, is_shared=is_shared, waits=waits)
    try:
        yield
    finally:
        unlock(file)
