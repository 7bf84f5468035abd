"""The hints of `memfit lint` on a script and on its own modules, for the recording.

The texts are read before the script starts, so that they are what ran. They are checked one by
one while it runs, so that the start is not delayed.
"""

import ast
import contextlib
import os
import time
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memfit.record.evidence import Hinted
from memfit.user_code.frames import display_path

_LARGEST_BYTES = 1_000_000
_MOST_FILES = 50


@dataclass(frozen=True, slots=True)
class ScriptFile:
    """A file of the user's.

    Attributes:
        file: The file as a user in the working folder would name it.
        text: What is in it.
    """

    file: str
    text: str


def read_script_files(command: Sequence[str]) -> tuple[ScriptFile, ...]:
    """Returns the script that `command` runs and the files of its own folder that it imports.

    Nothing is imported to find them. What cannot be found or read is left out.

    Args:
        command: Arguments for Python: a script or `-m` and a module, and what follows.
    """
    with contextlib.suppress(Exception):  # a hint is never worth a run
        return tuple(_sources(command))
    return ()


def lint_files(sources: Sequence[ScriptFile]) -> Iterator[tuple[Hinted, ...]]:
    """Yields the hints on each of `sources`; an error of lint's own makes none."""
    for source in sources:
        hints: tuple[Hinted, ...] = ()
        with contextlib.suppress(Exception):  # a hint is never worth a run
            hints = _hints(source)
        yield hints


def _hints(source: ScriptFile) -> tuple[Hinted, ...]:
    from memfit.lint import RULES, lint_source

    causes = {rule.code: rule.cause for rule in RULES}
    return tuple(
        Hinted(
            t_s=time.monotonic(),
            code=hint.code,
            cause=causes[hint.code],
            file=hint.file,
            line=hint.line,
            message=hint.message,
            fix=hint.fix,
        )
        for hint in lint_source(source.text, source.file)
        if hint.code != "MF001"  # it cannot be parsed: Python itself says so
    )


def _sources(command: Sequence[str]) -> Iterator[ScriptFile]:
    script = _find_script(command)
    text = _read(script.path) if script is not None else None
    if script is None or text is None:
        return
    yield ScriptFile(display_path(str(script.path)), text)
    imported = dict.fromkeys(path for path in _find_imported(script, text) if path != script.path)
    for path in list(imported)[: _MOST_FILES - 1]:
        inner = _read(path)
        if inner is not None:
            yield ScriptFile(display_path(str(path)), inner)


@dataclass(frozen=True, slots=True)
class _Script:
    """The file that runs first, and the folder that Python looks for its modules in."""

    path: Path
    folder: Path


def _find_script(command: Sequence[str]) -> _Script | None:
    """Returns what `command` runs; of a launcher such as torchrun, the script it is given."""
    here = Path.cwd()
    target = here / command[0]
    if command[0] == "-m":
        module = _find_module(command[1])
        if module is not None:
            return module
    elif target.is_dir():
        return _Script(target / "__main__.py", target)
    elif target.is_file():
        return _Script(target, target.parent.resolve())
    named = (here / word for word in command if word.endswith(".py"))
    path = next((path for path in named if path.is_file()), None)
    return None if path is None else _Script(path, path.parent.resolve())


def _find_module(name: str) -> _Script | None:
    """Returns a module in the working folder or on PYTHONPATH; others are not the user's."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    folders = [Path.cwd(), *(Path.cwd() / path for path in paths if path)]
    inner = Path(*name.split("."))
    found = (
        _Script(folder / path, folder)
        for folder in folders
        for path in (inner / "__main__.py", inner.with_suffix(".py"))
    )
    return next((script for script in found if script.path.is_file()), None)


def _find_imported(script: _Script, text: str) -> Iterator[Path]:
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=aliases):
                folder, names = script.folder, [alias.name for alias in aliases]
            case ast.ImportFrom(module=module, names=aliases, level=level):
                folder = script.path.parents[level - 1] if level else script.folder
                prefix = f"{module}." if module else ""
                names = [module or "", *(f"{prefix}{alias.name}" for alias in aliases)]
            case _:
                continue
        for inner in (folder.joinpath(*name.split(".")) for name in names if name):
            yield from filter(Path.is_file, (inner.with_suffix(".py"), inner / "__init__.py"))


def _read(path: Path) -> str | None:
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            return None
        with tokenize.open(path) as file:  # heeds a coding cookie and a byte order mark
            return file.read()
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None
