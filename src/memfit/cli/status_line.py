"""The live line at the bottom of the terminal, out of the way of what the script prints."""

import contextlib
import os
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from memfit.record.samples import Sample
from memfit.report.live_line import format_status
from memfit.supervise.live_status import LiveRun

_FEWEST_ROWS = 6
_SAVE, _RESTORE, _CLEAR_LINE = "\0337", "\0338", "\033[2K"


class StatusLine:
    """Keeps the last row of the terminal for the status; the script scrolls above it.

    The row is reserved by the terminal itself (its scroll region), so nothing the script
    prints, progress bars included, mixes with it. Without a terminal nothing is shown.

    Args:
        run: Folder of the run.
        is_shown: Whether the user wants it.
    """

    def __init__(self, run: Path, *, is_shown: bool) -> None:
        self._live = LiveRun(run)
        self._is_shown = is_shown and _is_capable()
        self._size: os.terminal_size | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._size is not None:
            rows = self._size.lines
            _write(f"{_SAVE}\033[r\033[{rows};1H{_CLEAR_LINE}{_RESTORE}")

    def update(self, sample: Sample) -> None:
        """Shows what is known now."""
        if not self._is_shown:
            return
        size = _terminal_size()
        if size != self._size:
            self._reserve(size)
        text = format_status(self._live.update(sample, time.monotonic()), size.columns - 1)
        _write(f"{_SAVE}\033[{size.lines};1H{_CLEAR_LINE}\033[2m{text}\033[0m{_RESTORE}")

    def _reserve(self, size: os.terminal_size) -> None:
        """A line feed first, so that what stands in the last row moves up and stays."""
        self._size = size
        _write(f"\n{_SAVE}\033[1;{size.lines - 1}r{_RESTORE}\033[1A")


def _is_capable() -> bool:
    is_dumb = os.environ.get("TERM", "dumb") == "dumb"
    return sys.stderr.isatty() and not is_dumb and _terminal_size().lines >= _FEWEST_ROWS


def _terminal_size() -> os.terminal_size:
    """Of the terminal that the line is shown on: stdout may be a file."""
    try:
        return os.get_terminal_size(sys.stderr.fileno())
    except OSError:
        return os.terminal_size((80, 24))


def _write(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # the terminal is gone; the script goes on
        sys.stderr.write(text)
        sys.stderr.flush()
