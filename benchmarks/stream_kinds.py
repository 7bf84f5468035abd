"""Tables 6 and 7 of `stream.py`: the least budget of every kind of source, and resuming."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fit import RunFailedError, limited_group
from stream_bench import Bench, claim, finish
from stream_data import ROW_BYTES
from stream_process import Ran, run_child
from stream_sources import KINDS, NO_STATE, PEERS

# The aim.
MOST_RESUME_S = 0.1

# What libraries load and free while they are used, besides the stream.
SLACK_BYTES = 16_000_000
OPENING_BYTES = 2_000_000_000


def tabulate_least(bench: Bench) -> str:
    """Returns table 6: each source with the least budget that memfit names for it."""
    rows = [("source", "MB of rows", "least budget MB", "peak anon MB", "every row, not killed")]
    title = "6. Least budgets, in a control group of what the idle process has, the budget and "
    title += f"{SLACK_BYTES / 1e6:.0f} MB"
    with limited_group(OPENING_BYTES) as group:
        if group is None:
            return f"{title}\n\nNo control group can be made here."
    for case, kind in KINDS.items():
        is_drawn = "pictures" in kind.data
        num_rows = bench.plan.pictures // 2 if is_drawn else bench.plan.some_rows
        folder = bench.prepare("some", kind.data, num_rows)
        size_mb = num_rows * (64 * 64 * 3 if is_drawn else ROW_BYTES) / 1e6
        try:
            ran = read_least(case, folder)
        except RunFailedError as error:
            rows.append((case, f"{size_mb:.0f}", "", "", f"no: {error}"))
            continue
        figures = ran.figures
        rows.append(
            (
                case,
                f"{size_mb:.0f}",
                f"{figures['least_bytes'] / 1e6:.1f}",
                f"{ran.peak.anon_bytes / 1e6:.1f}",
                "yes" if figures["rows"] == figures["expected"] else f"no: {figures['rows']} rows",
            )
        )
    reached = sum(row[-1] == "yes" for row in rows[1:])
    aim = claim(f"{reached} of {len(rows) - 1} sources", "all", reached == len(rows) - 1)
    return finish(title, rows, [aim])


def read_least(case: str, folder: Path) -> Ran:
    """Reads an epoch in a control group that is made tight once the source is open."""
    with limited_group(OPENING_BYTES) as group:
        assert group is not None

        def tighten(line: str, idle: Any) -> None:
            limit_bytes = idle.anon_bytes + idle.file_bytes + int(line.split()[1]) + SLACK_BYTES
            for name in ("memory.limit_in_bytes", "memory.max"):
                if (group / name).exists():
                    (group / name).write_text(str(limit_bytes))

        wanted = {"what": "least", "case": case, "folder": str(folder)}
        return run_child(wanted, group=group, when_idle=tighten)


def tabulate_resume(bench: Bench) -> str:
    """Returns table 7: going on from a state, in a stream that is made anew."""
    plan = bench.plan
    rows = [
        ("source", "points", "lost", "twice", "other order", "opening ms", "median ms", "worst ms")
    ]
    reached = 0
    for case, kind in KINDS.items():
        name, num_rows = ("fewest", plan.few_rows // 20) if kind.is_slow else ("few", plan.few_rows)
        folder = bench.prepare(name, kind.data, num_rows)
        wanted = {"what": "resume", "case": case, "points": plan.points, "folder": str(folder)}
        row, is_exact, took_s = resume(case, wanted)
        rows.append(row)
        reached += is_exact and took_s <= MOST_RESUME_S
    for case, (_, data, package) in PEERS.items():
        if find_spec(package) is None:
            rows.append((case, "not installed", *[""] * 6))
            continue
        folder = bench.prepare("few", data, plan.few_rows)
        wanted = {"what": "peer resume", "case": case, "points": plan.peer_points}
        rows.append(resume(case, {**wanted, "folder": str(folder)})[0])
    rows += [(case, "has no state", *[""] * 6) for case in NO_STATE]
    title = f"7. Resume at random points of {plan.few_rows:,} rows, the source opened anew"
    text = (
        f"{reached} of {len(KINDS)} kinds of source go on exactly, opened and with the next batch "
    )
    text += f"within {MOST_RESUME_S * 1e3:.0f} ms (median)"
    return finish(title, rows, [claim(text, "all", reached == len(KINDS))])


def resume(case: str, wanted: dict[str, Any]) -> tuple[tuple[str, ...], bool, float]:
    """Returns a row, whether every point was exact, and the usual time with the opening."""
    try:
        found = run_child(wanted).figures
    except RunFailedError as error:
        return (case, f"failed: {error}", *[""] * 6), False, 0.0
    counts = [found[name] for name in ("lost", "twice", "moved")]
    row = (
        case,
        str(found["points"]),
        *map(str, counts),
        f"{found['opening_s'] * 1e3:.0f}",
        f"{found['median_s'] * 1e3:.0f}",
        f"{found['worst_s'] * 1e3:.0f}",
    )
    return row, not any(counts), found["opening_s"] + found["median_s"]
