"""A machine in the terminal and as JSON."""

import dataclasses
import json
from collections.abc import Sequence

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from memfit.diagnose.machine_advice import Advice
from memfit.measure.machine import Machine
from memfit.units import format_size


def render_machine(machine: Machine, advice: Sequence[Advice], console: Console) -> None:
    """Prints what the machine offers, then what to do."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _rows(machine):
        table.add_row(Text(name), Text(value))
    console.print(table)
    for one in advice:
        style = "bold red" if one.is_risk else "bold"
        kind = "risk" if one.is_risk else "good to know"
        console.print(Padding(Text(f"{one.code} ({kind})", style=style), (1, 0, 0, 0)))
        console.print(Text(one.message))
        console.print(Text(f"→ {one.action}"))
    if not any(one.is_risk for one in advice):
        console.print(Padding(Text("No risks for training found.", "green"), (1, 0, 0, 0)))


def render_machine_json(machine: Machine, advice: Sequence[Advice]) -> str:
    """Returns the same as JSON text."""
    plain = dataclasses.asdict(machine)
    plain["advice"] = [dataclasses.asdict(one) for one in advice]
    return json.dumps(plain, indent=2, default=msgspec.structs.asdict) + "\n"


def _rows(machine: Machine) -> list[tuple[str, str]]:
    rows = [("limit", "; ".join(_limits(machine)))]
    rows.append(("available", format_size(machine.available_bytes)))
    rows.append(("swap", format_size(machine.swap_bytes) if machine.swap_bytes else "none"))
    if machine.shared_memory_bytes is not None:
        rows.append(("shared memory", format_size(machine.shared_memory_bytes)))
    rows.append(("malloc", machine.malloc or "unknown"))
    rows.append(("python", f"{machine.python} on {machine.platform}"))
    versions = [f"{name} {version}" for name, version in machine.versions.items()]
    rows.append(("packages", ", ".join(versions)))
    for name, devices in machine.devices.items():
        seen = "does not start" if devices is None else ", ".join(devices) or "none"
        rows.append((f"{name} sees", seen))
    rows += [
        ("nvidia", f"{one.name}: {format_size(one.used_bytes)} of {format_size(one.total_bytes)}")
        for one in machine.nvidia
    ]
    rows += [(name, value) for name, value in machine.settings.items()]
    return rows


def _limits(machine: Machine) -> list[str]:
    first, *others = machine.limits
    return [
        f"{format_size(first.limit_bytes)} ({first.source}), the lowest",
        *(f"{format_size(limit.limit_bytes)} ({limit.source})" for limit in others),
    ]
