"""Measures streams from disk beside other loaders, on the same data in one run.

    python benchmarks/stream.py [--quick] [--tables=1,5]

Every measurement is a process of its own (`stream_child.py`); nothing else runs meanwhile, and
cases that are compared take turns. Rates of an epoch that would take too long are those after its
first batch. Tables go to stdout, progress to stderr. Linux only.
"""

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fit import pick
from overhead import OtherWork, find_version, tell
from stream_bench import BACKENDS, QUICK, Bench, Plan
from stream_kinds import tabulate_least, tabulate_resume
from stream_reading import tabulate_cold, tabulate_iterating, tabulate_parquet
from stream_training import tabulate_fit, tabulate_pictures

TABLES: dict[str, Callable[[Bench], str]] = {
    "1": tabulate_iterating,
    "2": tabulate_fit,
    "3": tabulate_cold,
    "4": tabulate_parquet,
    "5": tabulate_pictures,
    "6": tabulate_least,
    "7": tabulate_resume,
}
PACKAGES = (
    "memfit",
    "keras",
    *BACKENDS,
    "numpy",
    "pyarrow",
    "datasets",
    "grain",
    "mosaicml-streaming",
    "ray",
)


def parse_arguments() -> argparse.Namespace:
    """Returns the arguments of this script."""
    parser = argparse.ArgumentParser(description="Measures streams beside other loaders.")
    parser.add_argument("--quick", action="store_true", help="little data, to try it out")
    parser.add_argument(
        "--tables",
        type=lambda text: pick(text, tuple(TABLES)),
        default=tuple(TABLES),
        help=f"some of {','.join(TABLES)}",
    )
    return parser.parse_args()


def main() -> None:
    """Measures and prints."""
    args = parse_arguments()
    others, begun_s = OtherWork(), time.monotonic()
    versions = ", ".join(f"{name} {find_version(name)}" for name in PACKAGES)
    print(f"{versions}, Python {platform.python_version()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), QUICK if args.quick else Plan())
        for number in args.tables:
            tell(f"table {number}")
            print(f"\n{TABLES[number](bench)}", flush=True)
    took_min = (time.monotonic() - begun_s) / 60
    print(f"\nTook {took_min:.0f} min; other processes took {others.share():.0%} of the machine.")


if __name__ == "__main__":
    main()
