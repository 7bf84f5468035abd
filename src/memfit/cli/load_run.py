"""Loads the run that a user names, and writes what they asked for."""

from pathlib import Path

from memfit.diagnose.diagnosis import Diagnosis, diagnose
from memfit.errors import UsageError
from memfit.record.read_run import read_run
from memfit.record.recording import Recording
from memfit.record.run_folder import find_run


def load(name: str | None) -> tuple[Path, Recording, Diagnosis]:
    """Returns the folder, the recording and the diagnosis of the run `name`."""
    folder = find_run(name)
    recording = read_run(folder)
    return folder, recording, diagnose(recording)


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
