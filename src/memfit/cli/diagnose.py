"""`memfit diagnose`: the diagnosis of a recorded run."""

import argparse
import sys

HELP = "Print the diagnosis of a recorded run."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of this command."""
    parser.add_argument(
        "name", metavar="RUN", nargs="?", help="folder or name of a run (default: the newest)"
    )
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.add_argument("--check", action="store_true", help="exit with 3 if a problem was found")


def run(args: argparse.Namespace) -> int:
    """Returns 0, or 3 with `--check` when a problem was found."""
    from memfit.cli.load_run import load
    from memfit.record.run_folder import find_run

    loaded = load(find_run(args.name))
    if args.json:
        from memfit.report.run.json import render_json

        sys.stdout.write(render_json(loaded))
    else:
        from rich.console import Console

        from memfit.report.run.text import render_text

        render_text(loaded, Console(highlight=False))
    return 3 if args.check and loaded.diagnosis.has_problem else 0
