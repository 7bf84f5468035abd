"""Tables 1, 3 and 4 of `stream.py`: rows in the page cache, rows from the disk, Parquet."""

from typing import Any

from fit import limited_group
from stream_bench import Bench, Plan, claim, finish, rate_of, run_in_turn
from stream_data import FEW_ROWS, ROW_BYTES
from stream_peers import READERS
from stream_process import Ran

# The aims.
LEAST_RATE, LEAST_TIMES_PEER, MOST_PEAK_MB, MOST_DEFF = 4e6, 2.0, 64, 1.1
LEAST_COLD_RATE = 1e6
LEAST_TIMES_PYARROW = 1.5

COLD_BYTES = 256_000_000
COLD_TIMES = 8
COLD_CASES = (
    "memfit, ingested",
    "memfit, .npy",
    "memfit, Parquet",
    "NumPy memmap",
    "torch DataLoader",
    "pyarrow, ParquetFile",
    "pyarrow, dataset",
)
PARQUET_CASES = ("memfit, Parquet", "pyarrow, ParquetFile", "pyarrow, dataset")
# These take their turn twice; the others are far slower.
FAST_CASES = (
    "memfit, ingested",
    "memfit, .npy",
    "NumPy memmap",
    "torch DataLoader",
    "Keras arrays, TensorFlow",
    "Keras arrays, JAX",
    "Keras arrays, torch",
)


def tabulate_iterating(bench: Bench) -> str:
    """Returns table 1: rows that are in the page cache."""
    done = run_in_turn(
        READERS,
        lambda case: bench.read(case, "rows", bench.plan.rows),
        bench.plan.rounds,
        FAST_CASES,
    )
    ours = done["memfit, ingested"]
    peers = {
        case: rate_of(one)
        for case, one in done.items()
        if isinstance(one, Ran)
        and not case.startswith("memfit")
        and (one.figures["deff"] or MOST_DEFF) < MOST_DEFF
    }
    claims = []
    if isinstance(ours, Ran) and peers:
        fastest = max(peers, key=lambda case: peers[case])
        times = rate_of(ours) / peers[fastest]
        peak = (ours.peak.anon_bytes + ours.peak.file_bytes) / 1e6
        claims = [
            claim(
                f"{rate_of(ours) / 1e6:.2f} Mrow/s",
                f"at least {LEAST_RATE / 1e6:g}",
                rate_of(ours) >= LEAST_RATE,
            ),
            claim(
                f"{times:.1f}x the fastest peer with deff under {MOST_DEFF} ({fastest})",
                f"at least {LEAST_TIMES_PEER:g}x",
                times >= LEAST_TIMES_PEER,
            ),
            claim(f"{peak:.0f} MB above idle", f"at most {MOST_PEAK_MB}", peak <= MOST_PEAK_MB),
        ]
    size_mb = bench.plan.rows * ROW_BYTES / 1e6
    title = f"1. One shuffled epoch of {size_mb:.0f} MB, sorted, in the page cache"
    few = f"MosaicML Streaming: the first {FEW_ROWS:,} rows."
    return finish(title, render_reads(done), [few, *claims])


def tabulate_cold(bench: Bench) -> str:
    """Returns table 3: rows that do not fit into memory, from the disk."""
    limit_bytes = COLD_BYTES * bench.plan.rows // Plan().rows
    num_rows = COLD_TIMES * limit_bytes // ROW_BYTES
    limit_bytes = max(limit_bytes, COLD_BYTES)  # Python itself needs some of it
    title = f"3. {num_rows * ROW_BYTES / 1e6:.0f} MB from the disk, control group of "
    title += f"{limit_bytes / 1e6:.0f} MB"
    with limited_group(limit_bytes) as group:
        if group is None:
            return f"{title}\n\nNo control group can be made here."

    def read(case: str) -> Ran:
        with limited_group(limit_bytes) as group:
            return bench.read(
                case, "cold", num_rows, group=group, seconds=2 * bench.plan.seconds, is_warm=False
            )

    done = run_in_turn(COLD_CASES, read)
    rate = rate_of(done["memfit, ingested"])
    claims = [
        claim(
            f"{rate / 1e6:.2f} Mrow/s after ingest",
            f"at least {LEAST_COLD_RATE / 1e6:g}",
            rate >= LEAST_COLD_RATE,
        )
    ]
    return finish(title, render_reads(done), claims)


def tabulate_parquet(bench: Bench) -> str:
    """Returns table 4: Parquet."""
    done = run_in_turn(
        PARQUET_CASES,
        lambda case: bench.read(case, "rows", bench.plan.rows),
        bench.plan.rounds,
        PARQUET_CASES,
    )
    ours, *theirs = (done[case] for case in PARQUET_CASES)
    times = rate_of(ours) / max(1.0, *map(rate_of, theirs))
    peak = ours.peak.anon_bytes / 1e6 if isinstance(ours, Ran) else 0.0
    budget = READERS[PARQUET_CASES[0]].budget_bytes / 1e6
    claims = [
        claim(
            f"{times:.1f}x pyarrow with a buffer",
            f"at least {LEAST_TIMES_PYARROW:g}x",
            times >= LEAST_TIMES_PYARROW,
        ),
        claim(
            f"{peak:.0f} MB above idle",
            f"the budget, {budget:.0f}",
            0 < peak <= budget,
        ),
    ]
    return finish("4. Parquet, in the page cache", render_reads(done), claims)


def render_reads(done: dict[str, Any]) -> list[tuple[str, ...]]:
    """Returns a row for each loader."""
    rows = [("loader", "krow/s", "CPU s/Mrow", "anon MB", "file MB", "deff")]
    for case, one in done.items():
        if not isinstance(one, Ran):
            rows.append((case, str(one), "", "", "", ""))
            continue
        rows.append(
            (
                case,
                f"{rate_of(one) / 1e3:.0f}",
                f"{one.figures['cpu_s']:.2f}",
                f"{one.peak.anon_bytes / 1e6:.0f}",
                f"{one.peak.file_bytes / 1e6:.0f}",
                "-" if one.figures["deff"] is None else f"{one.figures['deff']:.2f}",
            )
        )
    return rows
