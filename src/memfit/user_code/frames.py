"""Which frame, file, module and class is the user's own: not a library's, Python's or memfit's."""

import functools
import os
import site
import sys
import sysconfig
from pathlib import Path
from types import CodeType, FrameType, ModuleType

from memfit.slots import class_module, module_file
from memfit.user_code.frame_locals import read_locals

_AUTOGRAPH = "__autograph_generated_file"

# A file and a line number in it.
Line = tuple[str, int]


@functools.cache
def is_user_file(file: str) -> bool:
    """Whether `file` was written by the user: no library, no part of Python or memfit.

    Nor is it code that TensorFlow writes: a copy of a function, in a file of its own.
    """
    return not file.startswith(("<", *_library_folders())) and _AUTOGRAPH not in file


def is_own_file(file: str) -> bool:
    """Whether `file` is a part of memfit."""
    return file.startswith(_own_folder())


def display_path(file: str) -> str:
    """Returns `file` as a user in the working folder would name it."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (OSError, ValueError):  # it lies elsewhere, or the working folder is gone
        return file


def is_user_module(module: ModuleType | None) -> bool:
    """Whether `module` is the user's own. A module that loads itself when asked is not asked."""
    file = module_file(module)
    return bool(file) and is_user_file(file)


def is_user_class(kind: type) -> bool:
    """Whether `kind` is a class that the user wrote."""
    return is_user_module(sys.modules.get(class_module(kind)))


def user_files() -> list[str]:
    """Returns the files of the user's modules that are loaded."""
    modules = list(sys.modules.values())
    return [module_file(one) for one in modules if is_user_module(one)]


def find_running_line(
    frame: FrameType | None, *, makes: object | None = None
) -> tuple[str, int] | None:
    """Returns file and line of the user's code that `frame` runs for, the innermost first.

    Args:
        frame: Where to begin.
        makes: An object that is being made: its own `__init__` is not where it was asked for.
    """
    while frame is not None:
        file = frame.f_code.co_filename
        if is_user_file(file) and not (makes is not None and _is_init_of(frame, makes)):
            return file, frame.f_lineno
        frame = frame.f_back
    return None


def is_importing(frame: FrameType | None) -> bool:
    """Whether the user's code that `frame` runs for is waiting for an import."""
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def is_called_from(frame: FrameType | None, code: CodeType) -> bool:
    """Whether `code`, a library's own, runs between `frame` and the user's code."""
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        if frame.f_code is code:
            return True
        frame = frame.f_back
    return False


def is_run_by(frame: FrameType | None, package: str) -> bool:
    """Whether `package` has called what `frame` runs, directly or not."""
    while frame is not None and package in sys.modules:
        if str(frame.f_globals.get("__name__")).split(".")[0] == package:
            return True
        frame = frame.f_back
    return False


def find_caller(frame: FrameType | None) -> FrameType | None:
    """Returns the innermost frame from `frame` on that is not memfit's own."""
    while frame is not None and is_own_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _is_init_of(frame: FrameType, thing: object) -> bool:
    code = frame.f_code
    is_init = code.co_name == "__init__" and code.co_argcount > 0
    return is_init and read_locals(frame).get(code.co_varnames[0]) is thing


@functools.cache
def _own_folder() -> str:
    return f"{Path(__file__).parents[1]}{os.sep}"


@functools.cache
def _library_folders() -> tuple[str, ...]:
    """Where Python, its packages and memfit are, with links followed and as they stand.

    Not the prefix itself: a project may lie in it.
    """
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = [
        _own_folder().rstrip(os.sep),
        *(sysconfig.get_path(name) for name in names),
        *site.getsitepackages(),
        site.getusersitepackages(),
    ]
    both = {folder for one in folders for folder in (one, str(Path(one).resolve()))}
    return tuple(f"{folder}{os.sep}" for folder in both)
