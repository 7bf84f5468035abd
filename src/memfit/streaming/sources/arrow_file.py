"""Files that pyarrow reads a group at a time: what Parquet and Arrow files have in common."""

import contextlib
import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from memfit.errors import DataError
from memfit.streaming.files.local import DataFile
from memfit.streaming.files.optional_packages import load
from memfit.streaming.files.remote import RemoteFile, RemotePath
from memfit.streaming.sources.row_groups import Grouped


class ArrowFile(Grouped):
    """A file that pyarrow opens and that may stay open between reads.

    Those that are made of it call `Grouped.__init__` when they know their columns.

    Args:
        path: Where it is.
    """

    # As a sentence begins, such as "an Arrow file"; and as what needs a package.
    a_kind: ClassVar[str]
    kinds: ClassVar[str]

    def __init__(self, path: Path | RemotePath) -> None:
        self._file = DataFile(path) if isinstance(path, Path) else RemoteFile(path)
        self._pyarrow = load("pyarrow", self.kinds, "parquet")
        self._reader: Any = None
        self._opening = threading.Lock()

    def fingerprint(self) -> str:
        """Returns a text made of the file's size, samples of it and the columns."""
        digest = hashlib.sha256(self._file.sample())
        self._file.close()
        digest.update(",".join(one.name for one in self.schema).encode())
        return digest.hexdigest()[:32]

    def check(self) -> None:
        """Raises if the file was changed."""
        self._file.check()

    def close(self) -> None:
        """Lets go of the open file; the next read opens it again."""
        with self._opening:
            self._reader = None

    @contextlib.contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """What pyarrow raises inside is told with the file, and what of it could not be read."""
        try:
            yield
        except (OSError, self._pyarrow.ArrowException) as error:
            self._file.check()  # damaged, or written anew meanwhile?
            raise DataError(
                f"{self._file.path} is not {self.a_kind} that can be read: {what} is damaged or "
                f"cut ({str(error).strip()}). Write or copy it again."
            ) from None
