"""How much of an accelerator's memory is taken, and when: set before its first use."""

import sys

from memfit.arguments import check_size_text
from memfit.backends import chosen_backend_name, load
from memfit.backends.accelerators import Accelerators, AcceleratorSettings, tell_beyond
from memfit.errors import UsageError
from memfit.fitting.levers.change import Change
from memfit.measure.nvidia import open_nvidia
from memfit.messages import say
from memfit.user_code.frames import display_path, find_caller
from memfit.user_code.statements import find_first_call


def configure(
    *,
    on_demand: bool | None = None,
    limit: str | None = None,
    preallocate: float | bool | None = None,
) -> Change:
    """Sets how much of each accelerator's memory the framework takes, and when.

    Call it at the top of the script, before anything uses a device. The framework that Keras uses
    is set; it may be imported, and no device is used. Without an accelerator nothing is done, and a
    line on stderr says so. Written against the documented functions; not yet run on hardware.

    Args:
        on_demand: Whether memory is allocated as it is needed, or all at the start.
        limit: The most to take of each device, such as `"6GB"`.
        preallocate: The part of each device to take at the start, such as `0.75`, and no more
            than that; `False` means the same as `on_demand=True`.

    Returns:
        What was set. Its `undo()` works before the first use of a device.

    Raises:
        UsageError: If the settings contradict each other, the framework cannot do them, or a
            device is in use already.
        InvalidSizeError: If `limit` cannot be read.

    Example:
    ```python
    import memfit

    memfit.configure(on_demand=True)
    ```
    """
    settings = read_settings(on_demand=on_demand, limit=limit, preallocate=preallocate)
    name = chosen_backend_name()
    devices = load("accelerators", name)
    found = devices.find()
    is_too_late = devices.is_too_late(settings)
    if not found:
        return _without_accelerator(devices, is_too_late)
    if is_too_late:
        raise _too_late(name, devices, found)
    return _apply(devices, settings)


def read_settings(*, on_demand: object, limit: object, preallocate: object) -> AcceleratorSettings:
    """Returns what a user asks for, checked.

    Raises:
        UsageError: If a value has the wrong type or two of them contradict each other.
        InvalidSizeError: If `limit` cannot be read.

    Example:
    >>> read_settings(on_demand=None, limit="6GB", preallocate=None).limit_bytes
    6000000000
    """
    if on_demand is None and limit is None and preallocate is None:
        raise UsageError(
            "Nothing to configure. Received no argument. "
            'Give on_demand=True, limit="6GB" or preallocate=0.75.'
        )
    if not isinstance(on_demand, bool | None):
        raise UsageError(f"on_demand must be True or False. Received: on_demand={on_demand!r}.")
    limit_bytes = None if limit is None else check_size_text("limit", limit)
    fraction = _read_fraction(preallocate)
    implied = None if preallocate is None else fraction is None
    if on_demand is not None and implied not in (None, on_demand):
        raise UsageError(
            "on_demand and preallocate contradict each other. "
            f"Received: on_demand={on_demand!r}, preallocate={preallocate!r}. Give only one."
        )
    if limit is not None and fraction is not None:
        raise UsageError(
            "limit and preallocate both say how much to take. "
            f"Received: limit={limit!r}, preallocate={preallocate!r}. Give only one."
        )
    return AcceleratorSettings(on_demand if implied is None else implied, limit_bytes, fraction)


def _read_fraction(preallocate: object) -> float | None:
    if preallocate is None or preallocate is False:
        return None
    is_number = isinstance(preallocate, int | float) and not isinstance(preallocate, bool)
    if is_number and 0 < float(preallocate) <= 1:  # type: ignore[arg-type]  # a number
        return float(preallocate)  # type: ignore[arg-type]  # a number
    raise UsageError(
        "preallocate must be a fraction of the device above 0 and up to 1, or False. "
        f"Received: preallocate={preallocate!r}. Write it like 0.75."
    )


def _without_accelerator(devices: Accelerators, is_too_late: bool) -> Change:
    text = f"no accelerator that {devices.TITLE} can use here: nothing is configured"
    if is_too_late:
        text += "; with one this line would come too late: move it to the top of the script"
    say(text)
    return Change(text, lambda: None)


def _too_late(name: str, devices: Accelerators, found: tuple[str, ...]) -> UsageError:
    first = find_first_call(find_caller(sys._getframe()), {"keras", name})
    where = (
        f" The first line above it that calls Keras or {devices.TITLE} is "
        f"{display_path(first.file)}:{first.line}: {first.text}."
        if first
        else ""
    )
    return UsageError(
        f"memfit.configure comes too late: {devices.TITLE} has started its devices "
        f"({', '.join(found)}) in this process, and their memory settings are fixed.{where} "
        "Move memfit.configure to the top of the script, before any model, array or dataset, "
        "or restart the process (in a notebook: the kernel)."
    )


def _apply(devices: Accelerators, settings: AcceleratorSettings) -> Change:
    needs_sizes = settings.limit_bytes is not None or settings.fraction is not None
    sizes = _sizes_by_driver() if needs_sizes else ()
    note = tell_beyond(settings.limit_bytes, sizes) if settings.limit_bytes is not None else None
    if note and settings.limit_bytes is not None and settings.limit_bytes > max(sizes):
        if settings.on_demand is None:
            return Change(note, lambda: None)
        settings = AcceleratorSettings(on_demand=settings.on_demand)
    applied = devices.apply(settings, sizes)
    text = f"{applied.text}; {note}" if note and note not in applied.text else applied.text
    return Change(text, applied.undo)


def _sizes_by_driver() -> tuple[int, ...]:
    nvidia = open_nvidia()
    return tuple(one.total_bytes for one in nvidia.read()) if nvidia else ()
