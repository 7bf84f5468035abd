"""Files that pyarrow finds elsewhere: in S3, Google Cloud, Azure, HDFS, or where a user says."""

import fnmatch
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memfit.errors import DataChangedError, DataError, DataNotFoundError, UsageError
from memfit.streaming.files.optional_packages import load

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
# A name and a password may be in a URI: no message shows them.
_SECRET = re.compile(r"(?<=://)[^/@]*@|\?.*")
_GLOB = re.compile(r"[*?[]")
_MOST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class RemotePath:
    """Where a file is.

    Attributes:
        filesystem: A `pyarrow.fs.FileSystem`.
        path: The path in it.
        scheme: How a user's URI begins, such as `"s3://"`.
    """

    filesystem: Any
    path: str
    scheme: str = ""

    def __str__(self) -> str:
        return f"{self.scheme}{self.path}"

    @property
    def name(self) -> str:
        """The last part of it."""
        return self.path.rstrip("/").rpartition("/")[2]

    def open_file(self) -> Any:
        """Returns the file, to be read at any place."""
        return self.filesystem.open_input_file(self.path)

    def open_stream(self, compression: str | None) -> Any:
        """Returns the file, to be read from front to back."""
        return self.filesystem.open_input_stream(self.path, compression=compression)

    def ask(self) -> Any:
        """Returns what the file system knows about it.

        Raises:
            DataError: It does not answer.
        """
        return self._ask(self.path)

    def list_files(self, *, is_deep: bool = False) -> list["RemotePath"]:
        """Returns the files below it, by their names."""
        selector = load("pyarrow.fs", "Paths of this kind", "parquet").FileSelector
        below = self._ask(selector(self.path, recursive=is_deep, allow_not_found=True))
        found = sorted(one.path for one in below if one.type.name == "File")
        return [replace(self, path=one) for one in found]

    def _ask(self, what: Any) -> Any:
        try:
            return self.filesystem.get_file_info(what)
        except OSError as error:
            raise DataError(
                f"Cannot access {self}: {error}. Check that the file system can be reached, and "
                "that you may read it."
            ) from None


class RemoteFile:
    """A file elsewhere, noticed when it changes; as `DataFile` is here.

    Args:
        path: Where it is.

    Raises:
        DataNotFoundError: There is no such file.
        DataError: It is a folder or is empty, or the file system does not answer.
    """

    def __init__(self, path: RemotePath) -> None:
        self.path = path
        self._stamp = self._read_stamp()
        if self.size_bytes == 0:
            raise DataError(f"{path} is empty: 0 bytes. Leave it out, or write it again.")

    @property
    def size_bytes(self) -> int:
        """Its size when it was first seen."""
        return self._stamp[0]

    def check(self) -> None:
        """Raises if the file was changed since it was first seen."""
        if self._read_stamp() != self._stamp:
            raise DataChangedError(
                f"{self.path} has changed since the stream was made. Rows would be mixed up: make "
                "a new stream, and do not write to files that a training reads."
            )

    def read_head(self, number: int) -> bytes:
        """Returns its first bytes."""
        with self.path.open_file() as file:
            return bytes(file.read_at(min(number, self.size_bytes), 0))

    def sample(self) -> bytes:
        """Returns a digest of what the file system knows: to read parts of it may take long."""
        return hashlib.sha256(f"{self.path} {self._stamp}".encode()).digest()

    identity = sample

    def close(self) -> None:
        """Does nothing: it is never left open."""

    def _read_stamp(self) -> tuple[int, int]:
        found = self.path.ask()
        if found.type.name == "NotFound":
            raise DataNotFoundError(
                f"There is no file {self.path}. Check the path; {self._find_near()}."
            )
        if found.type.name != "File":
            raise DataError(f"Cannot read {self.path}: it is not a file. Give a file, or a glob.")
        return found.size, found.mtime_ns or 0

    def _find_near(self) -> str:
        folder = replace(self.path, path=self.path.path.rpartition("/")[0])
        names = ", ".join(one.name for one in folder.list_files()[:_MOST_SHOWN])
        return f"{folder} holds {names or 'no files'}"


def locate(value: Any, filesystem: Any = None) -> Path | RemotePath:
    """Returns where something is that a user names by a path or a URI.

    Args:
        value: The path or URI.
        filesystem: The `pyarrow.fs.FileSystem` that the path is in, if the user gives one.

    Raises:
        UsageError: There is no file system of this kind.
        DataError: The file system cannot be reached.
    """
    scheme = _SCHEME.match(str(value))
    if filesystem is None and scheme is None:
        return Path(value)
    fs: Any = load("pyarrow.fs", "Paths of this kind", "parquet")
    if filesystem is None:
        filesystem, value = _resolve(fs, str(value))
    elif not isinstance(filesystem, fs.FileSystem):
        raise UsageError(
            f"filesystem must be a pyarrow.fs.FileSystem. Received: a {type(filesystem).__name__}. "
            "Convert an fsspec one: pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(it))."
        )
    if isinstance(filesystem, fs.LocalFileSystem):
        return Path(value)
    return RemotePath(filesystem, str(value), "" if scheme is None else scheme[0])


def find_files(path: RemotePath) -> list[RemotePath] | None:
    """Returns the files of a folder, or those that match a glob; `None` if it is a single file."""
    kind = path.ask().type.name
    if kind == "Directory":
        return path.list_files()
    if kind == "File" or not _GLOB.search(path.path):
        return None
    parts = path.path.split("/")
    first = next(at for at, one in enumerate(parts) if _GLOB.search(one))
    base, pattern = replace(path, path="/".join(parts[:first])), parts[first:]
    return [
        one
        for one in base.list_files(is_deep=len(pattern) > 1)
        if _matches(one.path.split("/")[first:], pattern)
    ]


def _resolve(fs: Any, uri: str) -> tuple[Any, str]:
    shown = _SECRET.sub("", uri)
    try:
        filesystem, path = fs.FileSystem.from_uri(uri)
    except ValueError as error:  # of which pyarrow's own are
        raise UsageError(
            f"Cannot tell what {shown} is: {str(error).replace(uri, shown)}. Expected a path, or a "
            "URI that pyarrow can open, such as s3://bucket/name. For others give the file system: "
            "memfit.stream(path, filesystem=...); or copy the files first."
        ) from None
    except OSError as error:
        raise DataError(
            f"Cannot reach {shown}: {str(error).replace(uri, shown)}. Check the network and your "
            "credentials; or give the file system: memfit.stream(path, filesystem=...)."
        ) from None
    return filesystem, path


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether the parts of a path are those of a glob; `**` is any number of folders."""
    if not pattern or not parts:
        return not pattern and not parts
    if pattern[0] == "**":
        return _matches(parts, pattern[1:]) or _matches(parts[1:], pattern)
    is_hidden = parts[0].startswith(".") and not pattern[0].startswith(".")
    is_same = fnmatch.fnmatchcase(parts[0], pattern[0]) and not is_hidden
    return is_same and _matches(parts[1:], pattern[1:])
