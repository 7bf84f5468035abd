"""The table of private names that memfit relies on, and which function uses each."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

_Used = TypeVar("_Used", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class PrivateName:
    """A name that Keras does not document.

    Attributes:
        path: Where Keras has it, such as
            `"keras.src.models.functional.Functional._standardize_inputs"`. The last part may be an
            attribute that only objects of the class have.
        used_by: The function of this package that uses it.
        backend: The only backend on which Keras has it; `None` for all.
    """

    path: str
    used_by: str
    backend: str | None


_table: list[PrivateName] = []


def relies_on(*paths: str, backend: str | None = None) -> Callable[[_Used], _Used]:
    """Notes in the table that the decorated function or class uses these private names.

    Args:
        *paths: Where Keras has them.
        backend: The only backend on which Keras has them. Defaults to all.
    """

    def note(used: _Used) -> _Used:
        _table.extend(PrivateName(path, used.__qualname__, backend) for path in paths)
        return used

    return note


def private_names() -> tuple[PrivateName, ...]:
    """Returns the table: every private name, once for each function that uses it."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        importlib.import_module(f"memfit.keras_private.{module.name}")
    return tuple(_table)
