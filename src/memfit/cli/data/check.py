"""`memfit data check`: whether data is intact."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memfit.streaming.data.reading import ReadOptions
    from memfit.streaming.inspect.verify import Verification

HELP = "Read all data and report whether it is intact."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of this command."""
    from memfit.cli.data_arguments import add_source_arguments

    add_source_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Returns 0 if the data is intact and 1 if it is not."""
    from memfit.cli.data_arguments import read_options, read_source
    from memfit.report.data import render_checked, render_data_json

    checked = _check(read_source(args), read_options(args))
    sys.stdout.write(render_data_json(checked) if args.json else render_checked(checked))
    return 1 if checked.problems else 0


def _check(value: Any, options: "ReadOptions") -> "Verification":
    from memfit.errors import DataError
    from memfit.streaming.inspect.verify import Verification, check_source, check_store
    from memfit.streaming.open_data import open_data
    from memfit.streaming.store.format import accepts_folder

    try:
        source, _ = open_data(value, options)
        if isinstance(value, str) and accepts_folder(Path(value)):
            return check_store(Path(value))
        return check_source(source)
    except DataError as error:  # it cannot even be opened
        return Verification(None, (str(error),))
