"""`memfit run`: run a script unchanged, see its memory live, and get a diagnosis."""

import argparse
from pathlib import Path

from memfit.errors import UsageError
from memfit.units import parse_size

HELP = "Run a script, unchanged, and say what its memory does."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of this command."""
    parser.usage = (
        "memfit run [options] SCRIPT [ARGS ...]\n       memfit run [options] -m MODULE [ARGS ...]"
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="keep the recording here")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result as JSON")
    parser.add_argument("--quiet", action="store_true", help="show no live line and no summary")
    parser.add_argument(
        "--check", action="store_true", help="exit with 3 if memory grows or nears its limit"
    )
    parser.add_argument(
        "--limit", metavar="SIZE", help="judge against this limit, such as 4GB, if it is the lowest"
    )
    budgets = parser.add_mutually_exclusive_group()
    budgets.add_argument(
        "--budget", metavar="SIZE", help="keep every model.fit within this memory, such as 4GB"
    )
    budgets.add_argument(
        "--device-budget", metavar="SIZE", help="keep it within this memory of the accelerator"
    )
    parser.add_argument(
        "--no-logs", action="store_true", help="keep memory figures out of Keras's logs"
    )
    parser.add_argument(
        "--pss", action="store_true", help="also measure memory with shared pages counted once"
    )
    parser.add_argument("-m", action="store_true", dest="is_module", help="SCRIPT is a module")
    parser.add_argument(
        "target", metavar="SCRIPT", help="the script, as you would give it to python"
    )
    parser.add_argument(
        "arguments", metavar="ARGS", nargs=argparse.REMAINDER, help="its own arguments"
    )


def run(args: argparse.Namespace) -> int:
    """Returns the script's own exit code, or 3 with `--check` when a problem was found."""
    from memfit.cli.supervised_run import exit_like, open_run, read_budget, show_result, supervise

    if not args.is_module:
        _require_script(Path(args.target))
    if args.json is not None:
        _require_writable(args.json)
    limit_bytes = parse_size(args.limit) if args.limit is not None else None
    budget = read_budget(args)
    prefix = ["-m"] if args.is_module else []
    run_folder = open_run(args.target, args.out)
    command = [*prefix, args.target, *args.arguments]
    ended = supervise(command, run_folder, limit_bytes, budget, args)
    diagnosis = show_result(run_folder, ended, args)
    if args.check and diagnosis.has_problem:
        return 3
    return exit_like(ended)


def _require_script(path: Path) -> None:
    """Checks what Python would only say in its own, longer way."""
    expected = "Expected a Python script. Give it as you would to python: memfit run train.py"
    if not path.exists():
        raise UsageError(f"There is no such script. Received: {str(path)!r}. {expected}")
    if path.is_dir() and not (path / "__main__.py").exists():
        raise UsageError(
            f"That is a folder without a __main__.py. Received: {str(path)!r}. {expected}"
        )


def _require_writable(path: Path) -> None:
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise UsageError(
            f"Cannot write the result there. Received: --json {str(path)!r}. "
            "Expected a file in a folder that exists. Nothing was run."
        )
