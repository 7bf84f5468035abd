"""`memfit lint`: memory problems in source code, before it runs."""

import argparse
import os
import sys
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memfit.errors import UsageError

if TYPE_CHECKING:
    from memfit.lint.hint import Hint

HELP = "Find memory problems in source code, before it runs."
_SKIPPED = {"site-packages", "__pycache__", "venv", "node_modules"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of this command."""
    parser.add_argument(
        "paths", metavar="FILE", nargs="+", type=Path, help="Python file, or folder to search"
    )
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run(args: argparse.Namespace) -> int:
    """Returns 0 if nothing was found and 1 if something was."""
    from memfit.report.lint import render_hints, render_hints_json

    files = find_files(args.paths)
    hints = [hint for file in files for hint in lint_file(file)]
    text = render_hints_json(hints) if args.json else render_hints(hints, num_files=len(files))
    sys.stdout.write(text)
    return 1 if hints else 0


def lint_file(path: Path) -> "Sequence[Hint]":
    """Returns the hints on one file; what cannot be read is a hint too."""
    from memfit.lint import lint_source, unreadable

    try:
        with tokenize.open(path) as file:  # heeds a coding cookie and a byte order mark
            text = file.read()
    except SyntaxError as error:
        return [unreadable(str(path), error.msg)]
    except UnicodeDecodeError as error:
        return [unreadable(str(path), f"byte {error.start} is not valid {error.encoding}")]
    except OSError as error:
        return [unreadable(str(path), str(error.strerror))]
    return lint_source(text, str(path))


def find_files(paths: Sequence[Path]) -> list[Path]:
    """Returns the files that `paths` name, each once; folders are searched.

    Raises:
        UsageError: If a path is not there, or a folder has no Python file.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise UsageError(
                f"FILE must be a file or folder that exists. Received: {str(path)!r}. "
                "Write it like: memfit lint train.py src"
            )
        files = sorted(_search(path)) if path.is_dir() else [path]
        if not files:
            raise UsageError(
                f"A folder must contain files that end in .py, outside hidden folders and "
                f"environments. Received: {str(path)!r}. Name the files one by one."
            )
        found.update(dict.fromkeys(files))
    return list(found)


def _search(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if one[0] != "." and one not in _SKIPPED]
        yield from (Path(place, name) for name in names if name.endswith(".py"))
