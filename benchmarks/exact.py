"""Counts in which cases micro-batches are exact, and in which they are refused.

    python benchmarks/exact.py [--backends=torch,jax] [--page=docs/fitting.md] [--keep=FOLDER]

Cases are enumerated from Keras itself (tests/exactness): all losses, metrics, optimizers and
layers, and the features of the documentation. What is not refused is compared with plain Keras:
gradients, weights, other variables, metrics and logs of one update. A process a backend; what it
printed is kept in the folder, and a backend that is there already is not run again.
"""

import argparse
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from overhead import render_rows, tell

BACKENDS = ("torch", "tensorflow", "jax")
BEGIN, END = "<!-- make exact -->", "<!-- end of make exact -->"
CASES = Path(__file__).with_name("exact_backend.py")
WITHOUT_TENSORFLOW = Path(__file__).parents[1] / "tests" / "without_tensorflow"


def parse_arguments() -> argparse.Namespace:
    """Returns what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backends", default=",".join(BACKENDS))
    parser.add_argument("--keep", type=Path, help="keep what each backend printed here")
    parser.add_argument("--page", type=Path, help="put what is printed into this page")
    return parser.parse_args()


def find(backend: str, folder: Path | None) -> list[dict[str, Any]]:
    """Returns what became of the cases of a backend."""
    kept = None if folder is None else folder / f"{backend}.jsonl"
    printed = kept.read_text() if kept is not None and kept.exists() else run(backend)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(printed)
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


def run(backend: str) -> str:
    """Returns what the process of a backend printed."""
    begun_s = time.monotonic()
    hidden = [] if backend == "tensorflow" else [str(WITHOUT_TENSORFLOW)]
    done = subprocess.run(
        [sys.executable, str(CASES)],
        env={
            **os.environ,
            "KERAS_BACKEND": backend,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "OMP_NUM_THREADS": "1",
            "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
            "PYTHONPATH": os.pathsep.join([*hidden, os.environ.get("PYTHONPATH", "")]),
        },
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    tell(f"{backend}: {time.monotonic() - begun_s:.0f} s")
    return done.stdout


def tabulate(found: dict[str, list[dict[str, Any]]]) -> str:
    """Returns a row for each family and backend."""
    rows = [("family", "backend", "cases", "ok", "refused", "wrong")]
    tried = {backend: [one for one in lines if "family" in one] for backend, lines in found.items()}
    families = list(dict.fromkeys(one["family"] for lines in tried.values() for one in lines))
    for family in [*families, "all"]:
        for backend, lines in tried.items():
            outcomes = [one["outcome"] for one in lines if family in ("all", one["family"])]
            if not outcomes:
                continue  # what was kept has some families only
            ok, refused = outcomes.count("ok"), outcomes.count("refused")
            counts = (len(outcomes), ok, refused, len(outcomes) - ok - refused)
            rows.append((family, backend, *map(str, counts)))
    return render_rows(rows)


def list_refused(found: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    """Gives what was refused, and what is wrong, in words."""
    refused = {
        f"{one['family']}: {one['name']}"
        for lines in found.values()
        for one in lines
        if one["outcome"] == "refused"
    }
    yield textwrap.fill(f"Refused, each with its culprit named: {', '.join(sorted(refused))}.", 120)
    for backend, lines in found.items():
        for one in lines:
            if "family" in one and one["outcome"] not in ("ok", "refused"):
                what = f"{one['family']}: {one['name']}"
                yield f"Wrong on {backend}: {what}: {one['outcome']}: {one['why']}"


def tabulate_costs(found: dict[str, list[dict[str, Any]]]) -> str:
    """Returns what a proof took for each model of `fit.py`."""
    rows = [("model", "backend", "rows", "proof", "CPU of it", "first step of fit, CPU")]
    for backend, lines in found.items():
        for one in lines:
            if "model" in one:
                seconds = (one["proof_s"], one["proof_cpu_s"], one["first_step_cpu_s"])
                shown = (f"{each:.1f} s" for each in seconds)
                rows.append((one["model"], backend, str(one["rows"]), *shown))
    return render_rows(rows)


def describe(backends: Sequence[str]) -> str:
    """Returns which versions were tried."""
    names = ("keras", *backends)
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    return f"`make exact` printed this with {versions}."


def put_into(page: Path, printed: str) -> None:
    """Replaces what stands between the marks of a page."""
    before, _, rest = page.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n\n{printed}\n\n{END}{after}")


def main() -> int:
    """Runs and prints; the exit code says whether anything is wrong."""
    args = parse_arguments()
    backends = [one for one in BACKENDS if one in args.backends.split(",")]
    found = {backend: find(backend, args.keep) for backend in backends}
    printed = "\n\n".join(
        (
            describe(backends),
            tabulate(found),
            *list_refused(found),
            "What a proof took, beside the first step of `fit` after it:",
            tabulate_costs(found),
        )
    )
    print(printed)
    if args.page is not None:
        put_into(args.page, printed)
    return int("\nWrong on " in printed)


if __name__ == "__main__":
    sys.exit(main())
