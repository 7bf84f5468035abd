"""How much work waits for memory (Linux pressure stall information), and what was killed for it."""

from pathlib import Path

import msgspec

SYSTEM_PRESSURE = Path("/proc/pressure/memory")


class Pressure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Share of the last ten seconds, in percent, that was lost to waiting for memory.

    Attributes:
        some_percent: At least one task waited.
        full_percent: Every task waited at once.
    """

    some_percent: float
    full_percent: float


def read_pressure(path: Path = SYSTEM_PRESSURE) -> Pressure | None:
    """Returns the pressure in the file `path`, or `None` where the kernel has none."""
    try:
        return parse_pressure(path.read_text())
    except (OSError, ValueError):
        return None


def parse_pressure(text: str) -> Pressure | None:
    """Returns the ten-second figures of a pressure file."""
    ten_seconds: dict[str, float] = {}
    for line in text.splitlines():
        kind, _, figures = line.partition(" ")
        for figure in figures.split():
            name, _, value = figure.partition("=")
            if name == "avg10":
                ten_seconds[kind] = float(value)
    if "some" not in ten_seconds:
        return None
    return Pressure(ten_seconds["some"], ten_seconds.get("full", 0.0))


def count_machine_oom_kills() -> int | None:
    """Returns how many processes the kernel has killed for lack of memory since it started."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)
