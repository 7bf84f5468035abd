"""Run folders: where a run is kept, and which run a user means."""

import contextlib
import re
import time
from pathlib import Path

from memfit.errors import RunExistsError, RunNotFoundError
from memfit.record.jsonl import decode
from memfit.record.samples import Header

RUNS_FOLDER = Path("memfit-runs")
SUPERVISOR_FILE = "supervisor.jsonl"


def create_run(target: str, out: Path | None = None) -> Path:
    """Makes the folder of a new run and returns it.

    Args:
        target: The script or module that will run; it gives the folder its name.
        out: The folder to use. Defaults to `memfit-runs/<time>-<script>`.

    Raises:
        RunExistsError: If `out` already holds a run, finished or running.
        OSError: If the folder cannot be made.
    """
    if out is None:
        return _create_numbered(RUNS_FOLDER, _name_for(target))
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    if is_run(out):
        raise RunExistsError(
            f"The folder already holds a run. Received: {str(out)!r}. Expected a new or empty "
            "folder: a run is never overwritten, and two runs cannot share one. "
            "Name another folder, or remove this one first."
        )
    return out


def create_file(run: Path, pid: int) -> Path:
    """Returns a new path in `run` for what process `pid` will write."""
    path = run / f"agent-{pid}.jsonl"
    number = 2
    while path.exists():  # an earlier process of the run had the same number
        path = run / f"agent-{pid}-{number}.jsonl"
        number += 1
    return path


def is_run(folder: Path) -> bool:
    """Whether `folder` holds a run."""
    return bool(list_files(folder))


def list_files(run: Path) -> list[Path]:
    """Returns the files of a run; other files may lie beside them."""
    found = [*run.glob(SUPERVISOR_FILE), *run.glob("agent-*.jsonl")]
    return sorted(path for path in found if not path.is_symlink())  # a run leads to no other file


def list_runs(folder: Path = RUNS_FOLDER) -> list[Path]:
    """Returns the runs in `folder`, the newest first."""
    if not folder.is_dir():
        return []
    runs = (path for path in folder.iterdir() if path.is_dir() and is_run(path))
    return sorted(runs, key=_begun_s, reverse=True)


def find_run(name: str | None, folder: Path = RUNS_FOLDER) -> Path:
    """Returns the run that a user means by `name`.

    Args:
        name: A folder, the name of a run in `folder`, or `None` for the newest.
        folder: Where runs are kept.

    Raises:
        RunNotFoundError: If there is no such run.
    """
    if name is None:
        runs = list_runs(folder)
        if not runs:
            raise RunNotFoundError(
                f"No run is recorded here: {folder}/ is empty or missing. "
                "Record one with: memfit run train.py"
            )
        return runs[0]
    for path in (Path(name), folder / name):
        if path.is_dir() and is_run(path):
            return path
    raise RunNotFoundError(_explain_missing(name, folder))


def _explain_missing(name: str, folder: Path) -> str:
    path = Path(name)
    if path.is_dir():
        what = f"No run in the folder {name!r}: it has no supervisor.jsonl and no agent-*.jsonl."
    elif path.is_file():
        what = f"No run named {name!r}: that is a file, and a run is a folder."
    else:
        what = f"No run named {name!r}."
    recent = [run.name for run in list_runs(folder)[:3]]
    if not recent:
        return f"{what} {folder}/ has no runs yet. Record one with: memfit run train.py"
    return f"{what} Recent runs: {', '.join(recent)}. List all with: memfit runs"


def _name_for(target: str) -> str:
    name = Path(target).name.removesuffix(".py")
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.") or "run"
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{stem[:60]}"


def _create_numbered(folder: Path, name: str) -> Path:
    if not folder.is_dir():
        _create_ignored(folder)
    number = 1
    while True:
        path = folder / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:  # another memfit began in the same second
            number += 1
        else:
            return path


def _create_ignored(folder: Path) -> None:
    """Makes a folder that git passes over."""
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):  # a run goes on without it
        (folder / ".gitignore").write_text("*\n")


def _begun_s(run: Path) -> tuple[float, str]:
    """When the run was begun, by its own word; files copied elsewhere get new dates."""
    return min(map(_header_time_s, list_files(run))), run.name


def _header_time_s(path: Path) -> float:
    try:
        with path.open("rb") as file:
            header = decode(file.readline())
        return header.wall_time_s if isinstance(header, Header) else path.stat().st_mtime
    except (OSError, ValueError):
        return path.stat().st_mtime
