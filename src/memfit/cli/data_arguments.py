"""Data as a user names it on the command line."""

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memfit.streaming.data.reading import ReadOptions


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that name data."""
    parser.add_argument(
        "sources",
        metavar="SOURCE",
        nargs="+",
        help="file, folder or glob; several of one kind are read one after another",
    )
    parser.add_argument("--labels", metavar="SOURCE", help="source of the labels, if separate")
    parser.add_argument(
        "--weights", metavar="SOURCE", help="source of the sample weights, if separate"
    )
    parser.add_argument("--label", metavar="NAME", help="the column that is the label")
    parser.add_argument(
        "--columns", metavar="NAME,NAME", help="columns to read, separated by commas (default: all)"
    )
    parser.add_argument(
        "--features",
        choices=("columns", "matrix"),
        default="columns",
        help="matrix: numeric columns joined into one array (default: columns)",
    )
    parser.add_argument(
        "--image-size", metavar="HxW", help="height and width of pictures, such as 64x48"
    )


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


def read_options(args: argparse.Namespace) -> "ReadOptions":
    """Returns how the source is to be read.

    Raises:
        UsageError: The size of pictures cannot be read.
    """
    from memfit.streaming.data.reading import ReadOptions

    return ReadOptions(
        columns=None if args.columns is None else args.columns.split(","),
        label=args.label,
        features=args.features,
        image_size=None if args.image_size is None else _read_size(args.image_size),
    )


def _read_size(text: str) -> tuple[int, int]:
    from memfit.errors import UsageError

    height, _, width = text.lower().partition("x")
    if not (height.isdecimal() and width.isdecimal()):
        raise UsageError(
            f"Cannot read the size of pictures. Received: --image-size {text}. Write it like "
            "64x48: height, x, width."
        )
    return int(height), int(width)
