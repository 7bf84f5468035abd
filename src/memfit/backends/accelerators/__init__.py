"""Accelerators before they are first used: how much of their memory a framework takes, and when.

Written against the documented functions of each framework; not yet run on hardware.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from memfit.errors import UsageError
from memfit.units import format_size


@dataclass(frozen=True, slots=True)
class AcceleratorSettings:
    """What a user asks of all accelerators.

    Attributes:
        on_demand: Whether memory is taken as it is needed, or at the start; `None` for the
            framework's own way.
        limit_bytes: The most to take of each device.
        fraction: The same as a part of each device, above 0 and up to 1.
    """

    on_demand: bool | None = None
    limit_bytes: int | None = None
    fraction: float | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """What was set: as text, and how to undo it."""

    text: str
    undo: Callable[[], None]


class Accelerators(Protocol):
    """What memfit needs of a framework's accelerators. Modules of this package have this shape.

    Attributes:
        TITLE: The name of the framework, as it is written.
    """

    TITLE: str

    def find(self) -> tuple[str, ...]:
        """Returns the accelerators that it will use. Imports the framework and starts nothing."""

    def is_too_late(self, settings: AcceleratorSettings) -> bool:
        """Whether the devices are in use, and `settings` cannot be set any more."""

    def apply(self, settings: AcceleratorSettings, sizes_bytes: Sequence[int]) -> Applied:
        """Sets `settings`; `sizes_bytes` is what the driver says of the devices, where known."""


def tell_beyond(limit_bytes: int, sizes_bytes: Sequence[int]) -> str | None:
    """Returns a note on a limit that is more than the smallest device has."""
    if limit_bytes <= min(sizes_bytes, default=limit_bytes):
        return None
    least = format_size(min(sizes_bytes))
    note = f"{format_size(limit_bytes)} is more than a device has ({least})"
    return f"{note}, so nothing is limited" if limit_bytes > max(sizes_bytes) else note


def set_environment(variables: Mapping[str, str]) -> Callable[[], None]:
    """Sets environment variables; the result puts back what was there."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)

    def put_back() -> None:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value

    return put_back


def refuse_undo(title: str, reason: str) -> UsageError:
    """Returns the error for an undo that the framework does not allow."""
    return UsageError(
        f"The memory settings of {title} cannot be undone: {reason}. "
        "Restart the process (in a notebook: the kernel) without memfit.configure."
    )


def refuse_unknown_size(title: str, asked: str, instead: str) -> UsageError:
    """Returns the error for a setting that needs a size which cannot be read."""
    return UsageError(
        f"{title} cannot be set to {asked}: the memory of the device is not known. "
        f"Install nvidia-ml-py (pip install 'memfit[nvidia]'), or write {instead}."
    )
