"""`memfit runs`: the recorded runs."""

import argparse
import sys

from memfit.messages import say

HELP = "List the recorded runs, the newest first."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of this command."""
    parser.add_argument("--json", action="store_true", help="print them as JSON")


def run(args: argparse.Namespace) -> int:
    """Prints one row for each run."""
    from memfit.cli.load_run import load
    from memfit.record.run_folder import RUNS_FOLDER, list_runs

    folders = list_runs()
    if not folders and not args.json:
        say(
            f"no run is recorded here ({RUNS_FOLDER}/ is empty or missing). "
            "Record one with: memfit run train.py"
        )
        return 0
    loaded = [load(folder) for folder in folders]
    if args.json:
        from memfit.report.run.json import render_json_list

        sys.stdout.write(render_json_list(loaded))
    else:
        from rich.console import Console

        from memfit.report.runs_table import render_runs

        render_runs(loaded, Console(highlight=False))
    return 0
