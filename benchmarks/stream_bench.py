"""What the tables of `stream.py` have in common: the data, turns, and how figures are written."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fit import RunFailedError
from overhead import render_rows
from stream_peers import READERS
from stream_process import Ran, run_child

BACKENDS = ("tensorflow", "jax", "torch")


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured.

    Attributes:
        rows: Rows of 404 bytes.
        some_rows: Rows for every kind of source, read with its least budget.
        few_rows: Rows that are resumed.
        pictures: Pictures.
        points: Points at which each source is resumed.
        peer_points: The same for each peer.
        rounds: How often cases take their turn.
        seconds: How long batches are taken, at least one epoch of a fast loader.
    """

    rows: int = 2_000_000
    some_rows: int = 100_000
    few_rows: int = 20_000
    pictures: int = 20_000
    points: int = 100
    peer_points: int = 5
    rounds: int = 2
    seconds: float = 4.0


QUICK = Plan(200_000, 50_000, 5_000, 2_000, 5, 2, 1, 1.0)


class Bench:
    """Data, written when it is first needed, and what is measured on it.

    Args:
        folder: Where all of it goes.
        plan: How much is measured.
    """

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        self.plan = plan

    def prepare(self, name: str, data: Sequence[str], num_rows: int) -> Path:
        """Returns a folder with data of some formats."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        for one in data:
            done = folder / f"{one}.written"
            if not done.exists():
                run_child({"what": "write", "data": one, "rows": num_rows, "folder": str(folder)})
                done.touch()
        return folder

    def read(
        self, case: str, name: str, num_rows: int, *, group: Path | None = None, **wanted: Any
    ) -> Ran:
        """Measures a loader."""
        reader = READERS[case]
        if find_spec(reader.package) is None:
            raise RunFailedError("not installed")
        folder = self.prepare(name, reader.data, num_rows)
        if not wanted.get("is_warm", True):
            make_cold(folder)
        wanted = {
            "what": "read",
            "case": case,
            "rows": num_rows,
            "budget_bytes": reader.budget_bytes,
            "seconds": self.plan.seconds,
            "folder": str(folder),
            "is_warm": True,
            **wanted,
        }
        return run_child(wanted, backend=reader.backend, group=group)


def make_cold(folder: Path) -> None:
    """Lets the kernel forget what it has read of these files."""
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def run_in_turn(
    cases: Any,
    run: Callable[[str], Ran],
    rounds: int = 1,
    again: Sequence[str] = (),
    key: str = "rows_per_s",
) -> dict[str, Any]:
    """Runs all cases, and some of them again; of each the fastest, or in words why it failed."""
    done: dict[str, Any] = {}
    for number in range(rounds):
        for case in cases:
            if number > 0 and (case not in again or not isinstance(done[case], Ran)):
                continue
            try:
                ran = run(case)
            except RunFailedError as error:
                done.setdefault(case, str(error))
                continue
            before = done.get(case)
            if not isinstance(before, Ran) or ran.figures[key] > before.figures[key]:
                done[case] = ran
    return done


def rate_of(one: Any) -> float:
    """Returns the rows in a second; 0 where there is no result."""
    return float(one.figures["rows_per_s"]) if isinstance(one, Ran) else 0.0


def claim(figure: str, aim: str, is_reached: bool) -> str:
    """Writes a figure with its aim."""
    return f"- {figure}; aim: {aim}: {'reached' if is_reached else 'MISSED'}"


def finish(title: str, rows: Sequence[tuple[str, ...]], claims: Sequence[str]) -> str:
    """Returns a table with its title and what it says of the aims."""
    return "\n".join([title, "", render_rows(rows), "", *claims])
