"""Data in the terminal and as JSON: what is in it, whether it is intact, how fast it streams."""

import dataclasses
import json
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from memfit.streaming.inspect.describe import ColumnInfo, DataInfo
from memfit.streaming.inspect.speed import PassTiming, StreamTiming
from memfit.streaming.inspect.verify import Verification
from memfit.units import format_duration, format_size

_ROLES = ("inputs", "targets", "weights")


def render_data_json(value: DataInfo | Verification | StreamTiming) -> str:
    """Returns what is known of data as JSON text."""
    return json.dumps(dataclasses.asdict(value), indent=2) + "\n"


def render_info(info: DataInfo, console: Console) -> None:
    """Prints what is in some data."""
    console.print(f"{info.num_rows:,} rows, {format_size(info.size_bytes)} in memory")
    console.print(Text(_order(info)))
    table = _table("column", "type", "a row", right=2)
    for column in info.columns:
        table.add_row(Text(column.name), _kind(column), format_size(column.row_bytes))
    console.print(table)
    for role, tree in zip(_ROLES, info.parts, strict=False):
        console.print(Text(f"{role}: {_names(tree)}"))
    console.print(f"fingerprint: {info.fingerprint}")
    least = format_size(info.least_budget_bytes)
    console.print(f"smallest budget, shuffled, batches of {info.batch_size}: {least}")
    if info.is_shuffled or not info.expected:
        return
    budgets = _table("budget", "deff", "rows mixed", right=1)
    for one in info.expected:
        budgets.add_row(format_size(one.budget_bytes), f"{one.deff:.2f}", f"{one.window_rows:,}")
    console.print(budgets)


def render_checked(checked: Verification) -> str:
    """Returns what a check found as lines of text."""
    lines = [f"wrong: {one}" for one in checked.problems]
    lines += [f"{name}: {number:,} values are NaN" for name, number in checked.not_numbers]
    if not checked.problems:
        how = (
            "every row was read"
            if checked.checksums is None
            else f"{checked.checksums:,} checksums are right"
        )
        lines.append(f"intact: {checked.num_rows:,} rows; {how}")
    return "\n".join(lines) + "\n"


def render_timing(timing: StreamTiming, console: Console) -> None:
    """Prints two passes as a table."""
    table = _table("pass", "krow/s", "MB/s", "CPU s/Mrow", "peak MB", right=1)
    for name, one in (("first", timing.first), ("second", timing.second)):
        table.add_row(name, *_cells(one))
    console.print(table)
    console.print(Text(_deffs(timing)))
    console.print(f"resume: {format_duration(timing.resume_s)} to the next batch")
    size = format_size(timing.budget_bytes)
    what = "whole epochs" if timing.is_whole else f"the first {timing.second.num_rows:,} rows"
    load = "" if timing.load is None else f"; load {timing.load:.1f}"
    console.print(f"{what}, shuffled, batches of {timing.batch_size}, budget {size}{load}")


def _order(info: DataInfo) -> str:
    if info.is_shuffled:
        return "shuffled when it was ingested: deff 1.00 with any budget"
    if info.num_groups is None:
        return "not shuffled; rows can be read one by one"
    largest = f"the largest with {info.largest_group:,} rows"
    return f"not shuffled; {info.num_groups:,} groups that are read whole, {largest}"


def _kind(column: ColumnInfo) -> str:
    kind = " x ".join([column.dtype, *map(str, column.shape)])
    if column.mean_length is None:
        return kind
    return f"sequences of {kind}, {column.mean_length:.1f} steps on average"


def _names(tree: Any) -> str:
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key}: {_names(one)}" for key, one in tree.items()) + "}"
    if isinstance(tree, tuple):
        return "(" + ", ".join(map(_names, tree)) + ")"
    return str(tree)


def _cells(one: PassTiming) -> tuple[str, ...]:
    return (
        f"{one.num_rows / one.wall_s / 1e3:,.0f}",
        f"{one.size_bytes / one.wall_s / 1e6:,.0f}",
        f"{one.cpu_s / one.num_rows * 1e6:.2f}",
        f"{one.peak_bytes / 1e6:.0f}",
    )


def _deffs(timing: StreamTiming) -> str:
    text = f"deff {timing.deff:.2f} expected on sorted data"
    if timing.label_deff is not None:
        text += f"; {timing.label_deff:.2f} measured on these labels"
    return text


def _table(*names: str, right: int) -> Table:
    """A plain table; columns from `right` on hold figures."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for at, name in enumerate(names):
        table.add_column(name, justify="right" if at >= right else "left", overflow="fold")
    return table
