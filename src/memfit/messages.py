"""What memfit tells a user on stderr: lines that begin with `memfit:`, and a progress bar."""

import contextlib
import re
import sys
import textwrap
from collections.abc import Callable, Iterator

_PREFIX = "memfit: "
_WIDTH = 80  # of a terminal
Advance = Callable[[int], None]


# What moves the cursor, changes colours or turns the direction of a line, but for line ends.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Returns `text` with what would control a terminal spelt out, as Python writes it."""
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


def say(text: str, *, wraps: bool = False) -> None:
    """Writes `text` to stderr, each of its lines after `memfit:`.

    It never raises: stderr may be closed, and a training must not end for that.

    Args:
        text: What to say.
        wraps: Whether lines end at 80 columns. Defaults to `False`, so that commands and paths
            can be copied.
    """
    shown = printable(text).splitlines()
    lines = [_wrap(line) if wraps else f"{_PREFIX}{line}" for line in shown]
    with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or none at all
        sys.stderr.write("".join(f"{line}\n" for line in lines))
        sys.stderr.flush()


def _wrap(line: str) -> str:
    indent = " " * len(_PREFIX)
    return textwrap.fill(line, _WIDTH, initial_indent=_PREFIX, subsequent_indent=indent)


@contextlib.contextmanager
def show_progress(total: int | None, title: str) -> Iterator[Advance]:
    """Shows a progress bar on stderr if it is a terminal; the bar is gone at the end.

    Args:
        total: What all calls together add up to, if that is known.
        title: What is going on, such as `"ingesting cache"`.

    Yields:
        To be called with how much was done since the last call.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda number: progress.advance(task, number)
