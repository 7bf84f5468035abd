"""Packages that only some kinds of data need: imported when they are, or named if they are not."""

import importlib
from typing import Any

from memfit.errors import UsageError


def need(module: str, extra: str, what: str) -> Any:
    """Returns a module of a package that memfit does not require.

    Args:
        module: Its full name.
        extra: What to install memfit with so that it is there.
        what: What it is needed for, such as `"CSV files"`.

    Raises:
        UsageError: The package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"To read {what}, {error.name} must be installed, and it is not. "
            f"Install it: pip install 'memfit[{extra}]'."
        ) from error
