"""`memfit ingest`: data written once in a random order, for streams that mix well."""

import argparse
import sys
import time
from pathlib import Path

from memfit.messages import say

HELP = "Write data into a folder in a random order, for memfit.stream."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of this command."""
    from memfit.cli.data_arguments import add_source_arguments

    add_source_arguments(parser)
    parser.add_argument("folder", metavar="FOLDER", help="folder to write; it must not exist yet")
    parser.add_argument(
        "--budget",
        metavar="SIZE",
        default="512MB",
        help="approximate memory budget (default: 512MB)",
    )
    parser.add_argument(
        "--seed", metavar="N", type=int, default=0, help="seed of the random order (default: 0)"
    )


def run(args: argparse.Namespace) -> int:
    """Writes the folder and says what is in it."""
    from memfit.cli.data_arguments import read_options, read_source
    from memfit.streaming.data.source import row_bytes
    from memfit.streaming.ingest.ingest import write_shuffled
    from memfit.streaming.open_data import open_data
    from memfit.streaming.store.atomic_folder import find_unfinished
    from memfit.units import format_duration, format_size

    began_s = time.monotonic()
    try:
        folder = write_shuffled(
            read_source(args),
            Path(args.folder),
            read_options(args),
            budget=args.budget,
            seed=args.seed,
        )
    except KeyboardInterrupt:
        say(
            "stopped. Run the same command again to continue; to give up, remove "
            f"{find_unfinished(Path(args.folder))}."
        )
        return 130
    source, _ = open_data(folder)
    size = format_size(source.num_rows * row_bytes(source.schema))
    took = format_duration(time.monotonic() - began_s)
    sys.stdout.write(
        f"{folder}: {source.num_rows:,} rows, {size}, shuffled with seed {args.seed}, in {took}\n"
    )
    return 0
