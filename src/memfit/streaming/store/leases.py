"""Which folders of the cache are used by living processes, and by whom they must not be removed.

Each process has a file with the names of the folders that it uses, which it holds locked: the
lock ends with the process, however that ends. One file is enough for thousands of folders.
"""

import contextlib
import errno
import importlib.util
import os
import threading
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

# Windows has others, and does not remove a file that is open anyway.
HAS_LOCKS = importlib.util.find_spec("fcntl") is not None
# Some file systems of networks know no locks.
_NO_LOCKS = (errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS)
_GATE = "gate"
_uses: dict[tuple[int, Path], "_Use"] = {}
# A stream may be forgotten, which ends its use, at any moment: also while another begins.
_lock = threading.RLock()


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


def begin_use(folder: Path) -> Callable[[], None]:
    """Writes down that this process uses a folder of the cache.

    Returns:
        To be called when the folder is no longer used.
    """
    owner = os.getpid()

    def end() -> None:
        if os.getpid() == owner:  # a forked child has the stream, too
            with _lock, contextlib.suppress(OSError):
                use.count(folder.name, -1)

    with contextlib.suppress(OSError), hold_gate(folder.parent), _lock:
        key = (owner, folder.parent)
        if key not in _uses:
            _remove_ended(folder.parent)
            _uses[key] = _Use(_book(folder.parent) / f"{owner}-{uuid.uuid4().hex[:8]}")
        use = _uses[key]
        use.count(folder.name, +1)
        return end
    return lambda: None  # nothing can be written here: nothing is removed here, either


@contextlib.contextmanager
def hold_gate(cache: Path) -> Iterator[None]:
    """While it is held, no other process begins to use a folder, or removes one."""
    _book(cache).mkdir(parents=True, exist_ok=True)
    with locked(_book(cache) / _GATE, waits=True):
        yield


def find_used(cache: Path) -> set[str]:
    """Returns the names of the folders that living processes use."""
    return {name for path in _find_files(cache) if _is_alive(path) for name in _read_names(path)}


class _Use:
    """The folders that this process uses.

    Args:
        path: The file for their names.
    """

    def __init__(self, path: Path) -> None:
        self._file = lock(path)
        self._numbers: Counter[str] = Counter()
        weakref.finalize(self, _end, self._file, path, os.getpid())

    def count(self, name: str, change: int) -> None:
        """Counts a stream that begins or ends to use a folder."""
        before = self._numbers[name]
        self._numbers[name] += change
        if 0 in (before, before + change):
            self._file.write(f"{'+' if change > 0 else '-'}{name}\n".encode())
            self._file.flush()


def _end(file: IO[bytes], path: Path, owner: int) -> None:
    """Called when the process ends by itself."""
    file.close()
    if os.getpid() == owner:
        path.unlink(missing_ok=True)


def _book(cache: Path) -> Path:
    return cache.with_name(f"{cache.name}-in-use")


def _find_files(cache: Path) -> list[Path]:
    return [one for one in _book(cache).iterdir() if one.name != _GATE]


def _read_names(path: Path) -> set[str]:
    names: set[str] = set()
    for line in path.read_text().splitlines():
        (names.add if line[0] == "+" else names.discard)(line[1:])
    return names


def _remove_ended(cache: Path) -> None:
    for path in _find_files(cache):
        if not _is_alive(path):
            path.unlink(missing_ok=True)


def _is_alive(path: Path) -> bool:
    """Whether the process that wrote a file is there; asked while the gate is held."""
    if not HAS_LOCKS:
        import psutil

        return psutil.pid_exists(int(path.name.partition("-")[0]))
    try:
        with locked(path):
            return False
    except BlockingIOError:
        return True
