"""A progress bar for what takes long."""

import contextlib
import sys
from collections.abc import Callable, Iterator

Tell = Callable[[int], None]


@contextlib.contextmanager
def showing(total: int | None, doing: str) -> Iterator[Tell]:
    """A progress bar on stderr, if a user is looking; it is gone at the end.

    Args:
        total: What all calls together add up to, if that is known.
        doing: What is going on, such as `"ingesting cache"`.

    Yields:
        To be called with how much was done since the last call.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(doing, total=total)
        yield lambda number: progress.advance(task, number)
