"""Files as sources read them: at any place, by several threads, noticed when they change."""

import hashlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from memfit.errors import DataChangedError, DataError, DataNotFoundError
from memfit.units import format_size

_SAMPLES = 16
_SAMPLE_BYTES = 4096


class DataFile:
    """A file that is read at given places.

    It is opened at the first read and stays open until `close()`; the next read opens it again.

    Args:
        path: Where it is.

    Raises:
        DataNotFoundError: There is no such file.
        DataError: It is a folder, is empty or may not be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp = self._read_stamp()
        self._descriptor: int | None = None
        self._lock = threading.RLock()
        if not path.is_file():
            raise DataError(
                f"Cannot read {path}: it is not a file. Give a file, or a glob of them."
            )
        if self.size_bytes == 0:
            raise DataError(f"{path} is empty: 0 bytes. Leave it out, or write it again.")
        if not os.access(path, os.R_OK):
            raise DataError(f"Cannot read {path}: permission denied. Allow it with chmod +r.")

    @property
    def size_bytes(self) -> int:
        """Its size when it was first seen."""
        return self._stamp[0]

    def check(self) -> None:
        """Raises if the file was changed since it was first seen."""
        found = self._read_stamp()
        if found != self._stamp:
            what = "its contents" if found[0] == self.size_bytes else _sizes(self.size_bytes, found)
            raise DataChangedError(
                f"{self.path} has changed since the stream was made ({what}). Rows would be mixed "
                "up: make a new stream, and do not write to files that a training reads."
            )

    def read_at(self, places: Sequence[tuple[int, int]], into: memoryview) -> None:
        """Fills a buffer with the bytes at some places, one after another.

        Args:
            places: Pairs of offset and number of bytes.
            into: Room for all of them.
        """
        at = 0
        for offset, number in places:
            stop = at + number
            while at < stop:
                found = self._read_some(offset, into[at:stop])
                if found == 0:
                    self._refuse_end(offset, stop - at)
                at += found
                offset += found  # noqa: PLW2901  # the rest of a read that came in parts

    def read_head(self, number: int) -> bytes:
        """Returns its first bytes."""
        head = bytearray(min(number, self.size_bytes))
        self.read_at([(0, len(head))], memoryview(head))
        return bytes(head)

    def sample(self) -> bytes:
        """Returns a digest of its size and of parts of its contents all over the file."""
        digest = hashlib.sha256(str(self.size_bytes).encode())
        number = min(_SAMPLES, -(-self.size_bytes // _SAMPLE_BYTES))
        last = max(self.size_bytes - _SAMPLE_BYTES, 0)
        for at in range(number):
            offset = last * at // max(number - 1, 1)
            part = bytearray(min(_SAMPLE_BYTES, self.size_bytes - offset))
            self.read_at([(offset, len(part))], memoryview(part))
            digest.update(part)
        return digest.digest()

    def identity(self) -> bytes:
        """Returns a digest that is another one as soon as the file was moved or written again."""
        text = f"{self.path.absolute()} {self._stamp}"
        return hashlib.sha256(text.encode() + self.sample()).digest()

    def close(self) -> None:
        """Lets go of the open file."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self) -> None:
        # At the end of Python modules may be gone, contextlib among them.
        try:  # noqa: SIM105
            self.close()
        except (AttributeError, OSError):
            pass

    def _read_some(self, offset: int, into: memoryview) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._open(), [into], offset)
        with self._lock:  # Windows: the place to read is the file's own
            os.lseek(self._open(), offset, os.SEEK_SET)
            data = os.read(self._open(), len(into))
        into[: len(data)] = data
        return len(data)

    def _refuse_end(self, offset: int, missing_bytes: int) -> None:
        raise DataChangedError(
            f"{self.path} ends at byte {offset}; {format_size(missing_bytes)} more were expected, "
            f"as it had {self.size_bytes} bytes. It was truncated while it was read: write it "
            "again and make a new stream."
        )

    def _open(self) -> int:
        if self._descriptor is None:
            with self._lock:
                if self._descriptor is None:
                    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0)
                    self._descriptor = os.open(self.path, flags)
        return self._descriptor

    def _read_stamp(self) -> tuple[int, int]:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            raise DataNotFoundError(
                f"There is no file {self.path}. Check the path; {_nearest(self.path)}."
            ) from None
        except PermissionError:
            raise DataError(
                f"Cannot look into {self.path.parent}: permission denied. Allow it with chmod +x."
            ) from None
        return found.st_size, found.st_mtime_ns


def _sizes(before_bytes: int, found: tuple[int, int]) -> str:
    return f"it had {before_bytes} bytes and now has {found[0]}"


def _nearest(path: Path) -> str:
    folder = path.absolute().parent
    while not folder.exists():
        folder = folder.parent
    names = sorted(one.name for one in folder.iterdir())[:5]
    return f"{folder} holds {', '.join(names) if names else 'nothing'}"
