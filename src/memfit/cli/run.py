"""`memfit run`: run a script unchanged, see its memory live, and get a diagnosis."""

import argparse
from pathlib import Path

from memfit.errors import UsageError
from memfit.units import parse_size

HELP = "Run a script unchanged, record its memory and print a diagnosis."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of this command."""
    parser.usage = (
        "memfit run [options] SCRIPT [ARGS ...]\n       memfit run [options] -m MODULE [ARGS ...]"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="folder for the recording (default: a new one)"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write the diagnosis as JSON"
    )
    parser.add_argument("--quiet", action="store_true", help="print no live line and no summary")
    parser.add_argument("--check", action="store_true", help="exit with 3 if a problem was found")
    parser.add_argument(
        "--limit", metavar="SIZE", help="assume this memory limit, such as 4GB, if it is the lowest"
    )
    budgets = parser.add_mutually_exclusive_group()
    budgets.add_argument(
        "--budget", metavar="SIZE", help="keep every model.fit within this memory, such as 4GB"
    )
    budgets.add_argument(
        "--device-budget", metavar="SIZE", help="the same for the memory of the accelerator"
    )
    parser.add_argument(
        "--logs", action="store_true", help="add memory figures to Keras's logs of each epoch"
    )
    parser.add_argument(
        "--pss", action="store_true", help="also measure PSS: shared pages are counted once"
    )
    parser.add_argument(
        "-m", action="store_true", dest="is_module", help="SCRIPT is the name of a module"
    )
    parser.add_argument(
        "target", metavar="SCRIPT", help="the script, as you would pass it to python"
    )
    parser.add_argument(
        "arguments", metavar="ARGS", nargs=argparse.REMAINDER, help="arguments of the script"
    )


def run(args: argparse.Namespace) -> int:
    """Returns the script's own exit code, or 3 with `--check` when a problem was found."""
    from memfit.cli.supervised_run import exit_like, open_run, read_budget, show_result, supervise
    from memfit.supervise.supervisor import run_unrecorded

    if not args.is_module:
        _require_script(Path(args.target))
    if args.json is not None:
        _require_writable(args.json)
    limit_bytes = parse_size(args.limit) if args.limit is not None else None
    budget = read_budget(args)
    prefix = ["-m"] if args.is_module else []
    run_folder = open_run(args.target, args.out)
    command = [*prefix, args.target, *args.arguments]
    if run_folder is None:
        return exit_like(run_unrecorded(command, budget))
    ended = supervise(command, run_folder, limit_bytes, budget, args)
    diagnosis = show_result(run_folder, ended, args)
    if args.check and diagnosis.has_problem:
        return 3
    return exit_like(ended)


def _require_script(path: Path) -> None:
    """Checks the path before Python does, for a shorter message."""
    expected = "Write it as you would for python: memfit run train.py"
    if not path.exists():
        raise UsageError(f"SCRIPT must be a file that exists. Received: {str(path)!r}. {expected}")
    if path.is_dir() and not (path / "__main__.py").exists():
        raise UsageError(
            "SCRIPT must be a file, or a folder with a __main__.py. "
            f"Received: {str(path)!r}. {expected}"
        )


def _require_writable(path: Path) -> None:
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise UsageError(
            f"--json must be a file in a folder that exists. Received: {str(path)!r}. "
            "Nothing was run."
        )
