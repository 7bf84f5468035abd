"""Data as a person names it on the command line."""

import argparse
from typing import Any


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that name data."""
    parser.add_argument(
        "sources",
        metavar="SOURCE",
        nargs="+",
        help="file, folder or glob; several of one kind are read one after another",
    )
    parser.add_argument("--labels", metavar="SOURCE", help="the labels, if they lie elsewhere")
    parser.add_argument("--weights", metavar="SOURCE", help="the weights of samples, the same")


def read_source(args: argparse.Namespace) -> Any:
    """Returns what `memfit.stream` takes.

    Raises:
        UsageError: There are weights without labels.
    """
    from memfit.errors import UsageError

    sources = args.sources[0] if len(args.sources) == 1 else args.sources
    if args.weights is not None and args.labels is None:
        raise UsageError(
            f"Weights need labels. Received: --weights {args.weights} alone. "
            "Give --labels SOURCE as well."
        )
    given = tuple(one for one in (args.labels, args.weights) if one is not None)
    return (sources, *given) if given else sources
