"""Measures what the common remedies against growing memory do, on each backend.

    python benchmarks/folklore.py [--backends=tensorflow,jax,torch] [--keep=FOLDER]

Every training is a process of its own (`folklore_training.py`), two at a time, one for each
remedy and one without. Tables go to stdout, progress to stderr. With `--keep`, what was measured
is kept in that folder and is not measured again. Times are CPU seconds of an epoch, of a model or
of two steps. Linux only; some 8 minutes on two cores.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from overhead import OtherWork, explain, find_version, render_rows, show_mb, tell

BACKENDS = ("tensorflow", "jax", "torch")
TRAINING = Path(__file__).with_name("folklore_training.py")
TIMEOUT_S = 240.0
ROWS, WIDTH = 200_000, 100  # as in folklore_training.py
TF = ("tensorflow",)


@dataclass(frozen=True, slots=True)
class Remedy:
    """Something that is said to help.

    Attributes:
        name: What the tables call it.
        backends: Where it can be tried.
        variable: What it sets in the environment, as `NAME=value`.
    """

    name: str
    backends: tuple[str, ...] = BACKENDS
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A training, and what is tried on it.

    Attributes:
        name: What `folklore_training.py` calls it.
        title: What it is.
        shown: The figures that tell.
        remedies: The first is to do nothing.
        times: How often each is measured; the least and the most are shown.
    """

    name: str
    title: str
    shown: tuple[str, ...]
    remedies: tuple[Remedy, ...]
    times: int = 1


NOTHING = Remedy("-")
EACH = (NOTHING, Remedy("clear_session"), Remedy("gc.collect"))
SCENARIOS = (
    Scenario(
        "steady",
        "A clean fit, the remedy at the end of each epoch",
        ("growth", "CPU"),
        (*EACH, Remedy("growth", TF)),
    ),
    Scenario(
        "hoarding",
        "A fit with a callback that keeps 2.6 MB of predictions an epoch, the remedy at its end",
        ("growth", "CPU"),
        EACH,
    ),
    Scenario(
        "folds",
        "Models built and trained in a loop, the remedy after each",
        ("growth", "CPU"),
        (*EACH, Remedy("memfit.session")),
    ),
    Scenario(
        "tape",
        "A loop of our own in eager steps, with and without del of tape, gradients, outputs, loss",
        ("peak", "growth", "CPU"),
        (Remedy("-", ("tensorflow", "torch")), Remedy("del", ("tensorflow", "torch"))),
        times=3,
    ),
    Scenario(
        "compiled-tape",
        "The same in a tf.function",
        ("peak", "growth", "CPU"),
        (Remedy("-", TF), Remedy("del", TF)),
        times=3,
    ),
    Scenario(
        "activations",
        "Batches of 1024 whose activations take the memory",
        ("peak", "CPU", "weights"),
        (
            NOTHING,
            Remedy("smaller batch"),
            Remedy("gradient_accumulation_steps"),
            Remedy("memfit.split"),
            Remedy("mixed_float16"),
            Remedy("mixed_bfloat16"),
            Remedy("MALLOC_ARENA_MAX", variable="MALLOC_ARENA_MAX=2"),
            Remedy("MALLOC_MMAP_THRESHOLD_", variable="MALLOC_MMAP_THRESHOLD_=131072"),
            Remedy("TF_ONEDNN", TF, variable="TF_ONEDNN_USE_SYSTEM_ALLOCATOR=1"),
        ),
    ),
    Scenario(
        "data",
        "Rows from a file of 80 MB, two epochs",
        ("peak", "CPU"),
        (
            NOTHING,
            Remedy("generator"),
            Remedy("tf.data", TF),
            Remedy("tf.data, prefetch(AUTOTUNE)", TF),
            Remedy("tf.data, prefetch(200)", TF),
            Remedy("memfit.stream"),
        ),
    ),
)
SETTINGS = Scenario("settings", "What clear_session resets", (), (NOTHING,))


@dataclass(frozen=True, slots=True)
class Job:
    """One training."""

    scenario: Scenario
    remedy: Remedy
    backend: str
    number: int = 0

    @property
    def file_name(self) -> str:
        """Where its figures are kept."""
        return f"{self.backend}-{self.scenario.name}-{self.remedy.name}-{self.number}.json"


def main() -> None:
    """Measures what is not kept yet, and prints the tables."""
    args = parse_arguments()
    others = OtherWork()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (args.keep or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        write_data(folder)
        jobs = list(list_jobs(args.backends))
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda job: measure(job, folder), jobs))
        names = ("memfit", "keras", *args.backends)
        versions = ", ".join(f"{name} {find_version(name)}" for name in names)
        print(f"{versions}, Python {platform.python_version()}, {os.cpu_count()} cores\n")
        for scenario in SCENARIOS:
            print(f"{scenario.title}\n\n{make_table(scenario, args.backends, folder)}\n")
        print(f"{SETTINGS.title}\n\n{make_settings_table(args.backends, folder)}\n")
        print(f"Other processes took {others.share():.0%} of the machine meanwhile.")


def list_jobs(backends: Sequence[str]) -> Iterator[Job]:
    """Yields everything that is to be measured."""
    for scenario in (*SCENARIOS, SETTINGS):
        for number in range(scenario.times):
            for remedy in scenario.remedies:
                tried = [one for one in backends if one in remedy.backends]
                yield from (Job(scenario, remedy, backend, number) for backend in tried)


def write_data(folder: Path) -> None:
    """Writes the rows that trainings read from disk."""
    if not (folder / "x.npy").exists():
        x = np.random.default_rng(0).random((ROWS, WIDTH), dtype="float32")
        np.save(folder / "y.npy", x[:, :1].copy())
        np.save(folder / "x.npy", x)


def measure(job: Job, folder: Path) -> None:
    """Runs a training and keeps its figures, unless they are there."""
    if (folder / job.file_name).exists():
        return
    variable = job.remedy.variable
    environment = dict([variable.split("=")] if variable else [])
    done = subprocess.run(
        [sys.executable, str(TRAINING), job.scenario.name, job.remedy.name, str(folder)],
        env={
            **os.environ,
            **environment,
            **{"KERAS_BACKEND": job.backend, "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"},
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    if done.returncode == 0:
        figures = json.loads(done.stdout.splitlines()[-1])
    else:
        figures = {"failed": explain(done.returncode, done.stderr)}
    (folder / job.file_name).write_text(json.dumps(figures))
    tell(f"{job.file_name.removesuffix('.json')}: {figures}")


def make_table(scenario: Scenario, backends: Sequence[str], folder: Path) -> str:
    """Returns a row for each remedy, with the figures of each backend."""
    tried = [one for one in backends if any(one in each.backends for each in scenario.remedies)]
    rows = [("remedy", *(f"{one}: {what}" for one in tried for what in scenario.shown))]
    for remedy in scenario.remedies:
        cells = []
        for backend in tried:
            cells += show(scenario, remedy, backend, folder)
        rows.append((remedy.variable or remedy.name, *cells))
    return render_rows(rows)


def show(scenario: Scenario, remedy: Remedy, backend: str, folder: Path) -> list[str]:
    """Returns the figures of one remedy as cells."""
    shown = scenario.shown
    if backend not in remedy.backends:
        return [""] * len(shown)
    jobs = [Job(scenario, remedy, backend, number) for number in range(scenario.times)]
    found = [json.loads((folder / job.file_name).read_text()) for job in jobs]
    failed = [one["failed"] for one in found if "failed" in one]
    if failed:
        return ["failed", failed[0], *[""] * (len(shown) - 2)]
    cells = {
        "peak": show_range([one["peak_bytes"] for one in found], show_mb),
        "growth": show_range([one["growth_bytes"] or 0 for one in found], show_growth),
        "CPU": show_range([one["round_s"] for one in found], lambda took_s: f"{took_s:.2f} s"),
    }
    if "weights" in shown:
        cells["weights"] = show_difference(jobs[0], folder)
    return [cells[one] for one in shown]


def show_range(values: Sequence[float], write: Callable[[float], str]) -> str:
    """Returns the least and the most, or one where they read the same."""
    return " to ".join(dict.fromkeys((write(min(values)), write(max(values)))))


def show_growth(growth_bytes: float) -> str:
    """Writes what a round adds."""
    return f"{growth_bytes / 1e6:+.2f} MB"


def show_difference(job: Job, folder: Path) -> str:
    """Returns how far weights are from those of whole batches, relative to the largest of them."""
    whole, other = (
        np.load(folder / f"weights-{job.backend}-{name}.npy") for name in ("-", job.remedy.name)
    )
    difference = np.abs(whole - other).max() / np.abs(whole).max()
    return f"{difference:.0e}" if difference else "the same"


def make_settings_table(backends: Sequence[str], folder: Path) -> str:
    """Returns what is set before and after `clear_session`."""
    jobs = [Job(SETTINGS, NOTHING, backend) for backend in backends]
    found: list[dict[str, Any]] = [json.loads((folder / one.file_name).read_text()) for one in jobs]
    rows = [("setting", *backends)]
    rows += [(name, *(" → ".join(one[name]) for one in found)) for name in found[0]]
    return render_rows(rows)


def parse_arguments() -> argparse.Namespace:
    """Returns the arguments of this script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backends", type=lambda text: text.split(","), default=BACKENDS)
    parser.add_argument("--keep", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
