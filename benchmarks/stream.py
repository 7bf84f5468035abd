"""Measures how fast rows come from disk, in a shuffled order and little memory.

    python benchmarks/stream.py [--rows=2000000] [--budget=64MB] [--rounds=3]

Rows of 100 float32 and a label, sorted by the label; every case is a process of its own, and runs
one epoch more than it is measured, so that files are in the page cache. Linux only.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

WIDTH = 100
BATCH = 1024


@dataclass(frozen=True, slots=True)
class Measured:
    """One way to read all rows.

    Attributes:
        rows_per_s: The best epoch.
        cpu_s: CPU seconds for a million rows, in that epoch.
        peak_bytes: Anonymous memory above the idle process, at its highest.
        deff: Variance of batch means relative to independent sampling.
    """

    rows_per_s: float
    cpu_s: float
    peak_bytes: int
    deff: float


def write(folder: Path, num_rows: int) -> None:
    """Writes sorted rows."""
    shape = (num_rows, WIDTH)
    x = np.lib.format.open_memmap(folder / "x.npy", "w+", np.dtype("float32"), shape)
    for start in range(0, num_rows, 100_000):
        rows = np.arange(start, min(start + 100_000, num_rows))
        x[start : start + 100_000] = rows[:, None] + np.linspace(0, 0.5, WIDTH)
    x.flush()
    np.save(folder / "y.npy", np.arange(num_rows, dtype="float32"))


def read_npy(folder: Path, budget: str) -> Iterator[Any]:
    """The files as they are, by memfit."""
    return read_memfit((folder / "x.npy", folder / "y.npy"), budget)


def read_ingested(folder: Path, budget: str) -> Iterator[Any]:
    """The folder that `memfit.ingest` wrote."""
    return read_memfit(folder / "cache", budget)


def read_memfit(source: Any, budget: str) -> Iterator[Any]:
    """Epoch after epoch, without Keras."""
    from memfit.act.streaming.layout import open_data
    from memfit.act.streaming.loader import Loader, Settings
    from memfit.units import parse_size

    loader = Loader(*open_data(source), Settings(BATCH, parse_size(budget), seed=1))
    while True:
        yield loader.run()


def read_memmap(folder: Path, budget: str) -> Iterator[Any]:
    """Rows at random from a mapped file; its pages count as file memory, which is not shown."""
    x, y = (np.load(folder / name, mmap_mode="r") for name in ("x.npy", "y.npy"))
    rng = np.random.default_rng(1)
    while True:
        order = rng.permutation(len(y))
        parts = (order[at : at + BATCH] for at in range(0, len(y), BATCH))
        yield ((x.take(part, axis=0), y.take(part)) for part in parts)


CASES = {"memfit npy": read_npy, "memfit ingested": read_ingested, "numpy memmap": read_memmap}


def measure(case: str, folder: Path, budget: str, rounds: int) -> Measured:
    """Runs in a process of its own."""
    epochs = CASES[case](folder, budget)
    means: list[float] = []
    num_rows = 0
    first = next(epochs)
    idle_bytes = peak_bytes = read_anonymous()
    for _, y in first:
        means.append(float(y.mean()))
        num_rows += len(y)
    best = (float("inf"), 0.0)
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        for number, _ in enumerate(next(epochs)):
            if number % 64 == 0:
                peak_bytes = max(peak_bytes, read_anonymous())
        best = min(best, (time.perf_counter() - wall, time.process_time() - cpu))
    deff = float(np.var(means[:-1]) / (num_rows**2 / 12 / BATCH))
    rows_per_s = num_rows / best[0]
    return Measured(rows_per_s, best[1] / num_rows * 1e6, peak_bytes - idle_bytes, deff)


def read_anonymous() -> int:
    """Anonymous memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def main() -> None:
    """Writes the data, measures each case, prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--budget", default="64MB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.case:
        found = measure(args.case, args.folder, args.budget, args.rounds)
        print(json.dumps([found.rows_per_s, found.cpu_s, found.peak_bytes, found.deff]))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print("writing", file=sys.stderr)
        write(folder, args.rows)
        began = time.perf_counter()
        from memfit.act.streaming.ingest import ingest

        ingest((folder / "x.npy", folder / "y.npy"), folder / "cache")
        print(f"ingested in {time.perf_counter() - began:.1f} s", file=sys.stderr)
        print(f"| case | krow/s | CPU s/Mrow | anon MB of {args.budget} | deff |")
        print("|---|---|---|---|---|")
        for case in CASES:
            one = run_case(case, folder, args)
            cells = (
                f"{one.rows_per_s / 1e3:.0f}",
                f"{one.cpu_s:.2f}",
                f"{one.peak_bytes / 1e6:.0f}",
                f"{one.deff:.2f}",
            )
            print(f"| {case} | {' | '.join(cells)} |")
        print(f"\nload of the machine: {os.getloadavg()[0]:.1f}", file=sys.stderr)


def run_case(case: str, folder: Path, args: argparse.Namespace) -> Measured:
    """Measures a case in a process of its own."""
    given = [f"--case={case}", f"--folder={folder}", f"--budget={args.budget}"]
    done = subprocess.run(
        [sys.executable, __file__, *given, f"--rounds={args.rounds}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return Measured(*json.loads(done.stdout))


if __name__ == "__main__":
    main()
