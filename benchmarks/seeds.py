"""Runs the examples of the seeds under memfit and prints one table, then three figures.

    python benchmarks/seeds.py [NAMES] [--backends=torch,jax] [--keep=FOLDER]
        [--page=docs/seeds.md]

Every script of examples/seeds is a process of its own under `memfit run`, in a control group
where one can be made; `seeds.toml` says which there are. Two run at a time, save those whose
time is compared. Tables go to stdout, progress to stderr. Exits with 1 if a script ended
otherwise than `seeds.toml` says. `--keep` keeps what was measured, and runs only what is not
there yet; `--page` puts what is printed into a page, between its two marks. Linux only.
"""

import argparse
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from overhead import OtherWork, find_version, render_rows, tell
from seeds_figures import Runs, figure_accumulation, figure_arrays, figure_models
from seeds_runs import BACKENDS, SEEDS, VARIANTS, Example, Ran, Runner, load_examples, prepare

HEAD = (
    "example",
    "backend",
    "seed",
    "peak MB",
    "growth MB/epoch",
    "time s",
    "verdict",
    "findings",
    "final loss",
)
AT_A_TIME = 2
# Marks of a page, around what was printed.
BEGIN, END = "<!-- printed by make seeds -->", "<!-- end of what was printed -->"
Job = tuple[Example, str, str]


def parse_arguments() -> argparse.Namespace:
    """Returns the arguments of this script."""
    parser = argparse.ArgumentParser(description="Measures the examples of the seeds.")
    parser.add_argument("names", nargs="*", help="only these examples")
    parser.add_argument("--backends", default=",".join(BACKENDS), help="only these")
    parser.add_argument("--page", type=Path, help="put what is printed into this page")
    parser.add_argument("--keep", type=Path, help="keep results here; run what is not there yet")
    return parser.parse_args()


def find_jobs(examples: Sequence[Example], backends: Sequence[str]) -> list[Job]:
    """Returns every script to run, slow backends first, so that no long one is left at the end."""
    jobs = [
        (example, variant, backend)
        for backend in sorted(backends, key=("torch", "tensorflow", "jax").index)
        for example in examples
        if backend in example.backends
        for variant in example.scripts
        if backend == "tensorflow" or not example.needs_tensorflow(variant)
    ]
    return sorted(jobs, key=is_alone)


def is_alone(job: Job) -> bool:
    """Whether nothing else may run beside it."""
    example, _, backend = job
    return example.alone and backend == "tensorflow"


def run_all(jobs: Sequence[Job], run: Runner) -> Runs:
    """Returns what each script did, by example, variant and backend."""

    def work(job: Job) -> Ran:
        example, variant, backend = job
        ran = run(SEEDS / example.name / f"{variant}.py", backend)
        tell(f"{example.name} {variant} on {backend}: {ran.seconds:.0f} s {ran.verdict}")
        return ran

    beside = [job for job in jobs if not is_alone(job)]
    alone = [job for job in jobs if is_alone(job)]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        done = list(pool.map(work, beside))
    done += [work(job) for job in alone]
    keys = [(example.name, variant, backend) for example, variant, backend in (*beside, *alone)]
    return dict(zip(keys, done, strict=True))


def name_rows(examples: Sequence[Example], backends: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns of each row the example, its backend, and the scripts whose values stand in it."""
    rows = []
    for example in examples:
        for backend in (one for one in backends if one in example.backends):
            rows.append((example.name, backend, *VARIANTS))
            rows += [
                (example.name, backend, script)
                for script in example.also
                if backend == "tensorflow" or not example.needs_tensorflow(script)
            ]
    return rows


def title(name: str, scripts: Sequence[str]) -> str:
    """Returns the first cell of a row."""
    return name if len(scripts) > 1 else f"{name}: {scripts[0].replace('_', ' ')}"


def tabulate(examples: Sequence[Example], backends: Sequence[str], runs: Runs) -> str:
    """Returns the table: a row for each example and backend, three values in a cell."""
    seeds = {example.name: example.seed for example in examples}
    rows = [HEAD]
    for name, backend, *scripts in name_rows(examples, backends):
        found = [runs.get((name, script, backend)) for script in scripts]
        rows.append(make_row(title(name, scripts), backend, seeds[name], found))
    return render_rows(rows)


def make_row(name: str, backend: str, seed: str, found: Sequence[Ran | None]) -> tuple[str, ...]:
    """Returns the cells of one row."""
    cells = zip(*(show(ran) for ran in found), strict=True)
    return (name, backend, seed, *(" / ".join(cell) for cell in cells))


def show(ran: Ran | None) -> tuple[str, ...]:
    """Returns what stands of one run in the cells of its row; a dash if it was not run."""
    if ran is None:
        return ("-",) * 6
    return (
        f"{ran.peak_bytes / 1e6:.0f}",
        "-" if ran.error else ran.growth,
        f"{ran.seconds:.0f}",
        ran.error or ran.verdict,
        ran.findings or "none",
        "-" if ran.loss is None else f"{ran.loss:.4g}",
    )


def find_surprises(jobs: Sequence[Job], runs: Runs) -> list[str]:
    """Returns a sentence for each script that ended otherwise than `seeds.toml` says."""
    surprises = []
    for example, variant, backend in jobs:
        ran = runs[example.name, variant, backend]
        expected = example.fails if variant == "as_given" else None
        if (ran.error or None) != (expected and expected["error"]):
            surprises.append(f"{example.name} {variant} on {backend}: {ran.error} {ran.stderr}")
    return surprises


def describe(backends: Sequence[str]) -> str:
    """Returns the first line: what was measured on what."""
    versions = ", ".join(f"{name} {find_version(name)}" for name in ("memfit", "keras", *backends))
    return f"{versions}, Python {platform.python_version()}, {os.cpu_count()} cores"


def draw_figures(
    examples: Sequence[Example], backends: Sequence[str], runs: Runs, run: Runner
) -> Iterator[str]:
    """Yields the runtime's own peak, and the figures whose examples were run."""
    idle = {backend: run(SEEDS / "runtime.py", backend) for backend in backends}
    loaded = (f"{ran.peak_bytes / 1e6:.0f} MB on {backend}" for backend, ran in idle.items())
    yield f"The imported runtime alone peaks at {', '.join(loaded)}."
    names = {example.name for example in examples}
    if "arrays" in names:
        yield figure_arrays(backends, runs, idle)
    if "accumulation" in names:
        yield figure_accumulation(backends, run)
    if "many-models" in names:
        yield figure_models(backends, runs)


def put_into(page: Path, printed: str) -> None:
    """Replaces what stands between the marks of a page."""
    before, _, rest = page.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n\n{printed}\n\n{END}{after}")


def main() -> int:
    """Runs and prints."""
    args = parse_arguments()
    backends = [one for one in BACKENDS if one in args.backends.split(",")]
    examples = [one for one in load_examples() if not args.names or one.name in args.names]
    others, begun_s = OtherWork(), time.monotonic()
    prepare()
    jobs = find_jobs(examples, backends)
    run = Runner(args.keep)
    runs = run_all(jobs, run)
    printed = "\n\n".join(
        (
            describe(backends),
            tabulate(examples, backends, runs),
            *draw_figures(examples, backends, runs, run),
            f"Took {(time.monotonic() - begun_s) / 60:.0f} minutes; others took "
            f"{others.share():.0%} of the machine meanwhile.",
        )
    )
    print(printed)
    if args.page is not None:
        put_into(args.page, printed)
    surprises = find_surprises(jobs, runs)
    print(*surprises, sep="\n", end="\n" if surprises else "")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
