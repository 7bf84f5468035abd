"""`memfit data info`: what is in some data."""

import argparse
import sys

HELP = "Show columns and size of data, and how well each budget shuffles it."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of this command."""
    from memfit.cli.data_arguments import add_source_arguments

    add_source_arguments(parser)
    parser.add_argument(
        "--batch-size", metavar="N", type=int, default=256, help="rows per batch (default: 256)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Prints rows, columns, and the least budget."""
    from rich.console import Console

    from memfit.cli.data_arguments import read_options, read_source
    from memfit.report.data import render_data_json, render_info
    from memfit.streaming.inspect.describe import inspect_data
    from memfit.streaming.open_data import open_data

    source, layout = open_data(read_source(args), read_options(args))
    info = inspect_data(source, layout, args.batch_size)
    if args.json:
        sys.stdout.write(render_data_json(info))
    else:
        render_info(info, Console(highlight=False))
    return 0
