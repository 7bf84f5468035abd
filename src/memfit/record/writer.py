"""Appends entries to a file so that a kill at any moment loses nothing that was written."""

import os
from pathlib import Path

from memfit.record.evidence import Entry
from memfit.record.jsonl import encode


class Writer:
    """Appends lines to one file, each with one write of its own.

    Nothing is buffered in the process, so `kill -9` loses nothing. A failed write (disk
    full, folder gone) raises nothing: it is kept in `error`, later lines are tried again.

    Args:
        path: The file; it must not exist.

    Raises:
        OSError: If the file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._descriptor: int | None = os.open(path, flags, 0o644)
        self._is_line_open = False
        self.error: OSError | None = None

    def append(self, entry: Entry) -> None:
        """Writes `entry`; a failure is kept in `error`."""
        if self._descriptor is None:
            return
        line = encode(entry)
        if self._is_line_open:  # a write was cut short: end that line first
            line = b"\n" + line
        try:
            written = os.write(self._descriptor, line)
        except OSError as error:
            self.error = error
        else:
            self._is_line_open = written < len(line)

    def close(self) -> None:
        """Closes the file; later entries are dropped."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
