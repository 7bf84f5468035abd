"""Packages that only some kinds of data need: imported when one of these is opened."""

import importlib
from typing import Any

from memfit.errors import MissingPackageError


def load(module: str, kind: str, extra: str, *, package: str | None = None) -> Any:
    """Returns a module of a package that memfit does not need otherwise.

    Args:
        module: What to import.
        kind: What it is needed for, in words.
        extra: What `pip install "memfit[...]"` installs it with.
        package: What pip calls it, if that is not how the module's name begins.

    Raises:
        MissingPackageError: It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        # The line of pip first: it is what helps, whatever is wrong with the package.
        raise MissingPackageError(
            f'{kind} need {package or module.partition(".")[0]}: pip install "memfit[{extra}]". '
            f"Python says: {error}."
        ) from None
