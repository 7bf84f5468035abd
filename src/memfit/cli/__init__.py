"""The command line: one module a command, and the one place that turns errors into exit codes.

0 success, 1 failed, 2 wrong use, 3 a problem was found (with `--check`).
"""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import memfit
from memfit.errors import MemfitError
from memfit.messages import say

COMMANDS = ("run", "report", "diagnose", "explain", "runs", "doctor", "lint", "ingest", "data")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command that `argv` names and returns the exit code."""
    _open_closed_streams()
    parser = make_parser()
    if not (sys.argv[1:] if argv is None else argv):
        parser.print_help(sys.stderr)
        return 2
    args = parser.parse_args(argv)
    try:
        return int(args.run(args))
    except MemfitError as error:
        say(str(error))
        return error.exit_code
    except BrokenPipeError:  # the reader of our output has closed the pipe
        sys.stderr.close()
        return 0


def _open_closed_streams() -> None:
    """A stream that was closed before memfit began is `None`: what goes there is for nobody."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115  # to the very end


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of all commands. Loads nothing heavy: `--help` must be quick."""
    parser = argparse.ArgumentParser(
        prog="memfit",
        description="Keep Keras training within the available memory.",
        epilog="Start with: memfit run train.py",
    )
    parser.add_argument("--version", action="version", version=f"memfit {memfit.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = importlib.import_module(f"memfit.cli.{name}")
        command = commands.add_parser(name, help=module.HELP, description=module.HELP)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser
