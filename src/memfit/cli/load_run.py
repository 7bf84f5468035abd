"""Loads the run that a user names, and writes what they asked for."""

from pathlib import Path

from memfit.diagnose.diagnosis import Run
from memfit.errors import UsageError
from memfit.record.read_run import read_run


def load(folder: Path) -> Run:
    """Returns the run in `folder`, with its diagnosis."""
    return Run.of(read_run(folder))


def write_text(path: Path, text: str) -> None:
    """Writes `text` to `path`.

    Raises:
        UsageError: If that cannot be done.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"Cannot write there ({error.strerror}). Received: {str(path)!r}. "
            "Expected a file in a folder that exists and can be written. Name another with -o."
        ) from error
