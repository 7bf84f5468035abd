"""`memfit data bench`: how fast data streams here."""

import argparse
import sys

HELP = "Measure how fast data streams on this machine, shuffled."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of this command."""
    from memfit.cli.data_arguments import add_source_arguments

    add_source_arguments(parser)
    parser.add_argument(
        "--batch-size", metavar="N", type=int, default=256, help="rows per batch (default: 256)"
    )
    parser.add_argument(
        "--budget", metavar="SIZE", default="256MB", help="memory budget (default: 256MB)"
    )
    parser.add_argument(
        "--seconds",
        metavar="N",
        type=float,
        default=10.0,
        help="maximum seconds per pass (default: 10)",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Prints a table of two passes."""
    from rich.console import Console

    from memfit.cli.data_arguments import read_options, read_source
    from memfit.report.data import render_data_json, render_timing
    from memfit.streaming.inspect.speed import time_stream
    from memfit.streaming.loader.settings import LoaderSettings
    from memfit.streaming.open_data import open_data
    from memfit.units import parse_size

    settings = LoaderSettings(args.batch_size, parse_size(args.budget), seed=0)
    value, options = read_source(args), read_options(args)
    with Console(stderr=True).status("Streaming"):
        timing = time_stream(lambda: open_data(value, options), settings, args.seconds)
    if args.json:
        sys.stdout.write(render_data_json(timing))
    else:
        render_timing(timing, Console(highlight=False))
    return 0
