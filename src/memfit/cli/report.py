"""`memfit report`: one offline HTML page of a run."""

import argparse
import sys
from pathlib import Path

HELP = "Write the report of a run as one HTML page that works offline."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of this command."""
    parser.add_argument(
        "name", metavar="RUN", nargs="?", help="folder or name of a run (default: the newest)"
    )
    parser.add_argument(
        "-o", "--out", type=Path, metavar="FILE", help="the page (default: RUN/report.html)"
    )


def run(args: argparse.Namespace) -> int:
    """Writes the page and prints where it is."""
    from memfit.cli.load_run import load, write_text
    from memfit.record.run_folder import find_run
    from memfit.report.run.html import render_html

    folder = find_run(args.name)
    path = args.out or folder / "report.html"
    if args.out is None and path.is_symlink():
        path.unlink()  # whoever put it there would choose the file that is written
    write_text(path, render_html(load(folder)))
    sys.stdout.write(f"{path}\n")
    return 0
