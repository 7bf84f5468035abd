"""Loads the run that a user names, and writes files for them."""

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
            f"The file must be in a folder that exists and can be written ({error.strerror}). "
            f"Received: {str(path)!r}. Name another with -o."
        ) from error
