"""Tables 2 and 5 of `stream.py`: `fit` beside arrays in memory, and folders of pictures."""

import tempfile
from importlib.util import find_spec

from fit import RunFailedError
from stream_bench import BACKENDS, Bench, claim, finish, rate_of, run_in_turn
from stream_data import ROW_BYTES
from stream_process import Ran, run_child

# The aims.
LEAST_FIT = {"tensorflow": 1.5, "jax": 1.5, "torch": 0.95}
MOST_FIT_MEMORY = 0.05
LEAST_TIMES_SECOND = 3.0

# Below 4% of what Keras takes for the arrays.
FIT_BUDGET_BYTES = {"tensorflow": 96_000_000, "jax": 20_000_000, "torch": 32_000_000}
PICTURE_CASES = {
    "memfit": "memfit",
    "keras": "image_dataset_from_directory",
    "torch": "torch DataLoader, 2 workers",
}


def tabulate_fit(bench: Bench) -> str:
    """Returns table 2: the dense net, trained on arrays in memory and on a stream."""
    folder = bench.prepare("rows", ("npy", "store"), bench.plan.rows)
    head = ("backend", "one batch krow/s", "arrays krow/s", "MB")
    rows = [(*head, "budget MB", "memfit krow/s", "MB", "rate", "memory")]
    claims = []
    for backend in BACKENDS:
        if find_spec(backend) is None:
            rows.append((backend, "not installed", *[""] * 7))
            continue

        def fit(case: str, backend: str = backend) -> Ran:
            wanted = {
                "what": "fit",
                "case": case,
                "budget_bytes": FIT_BUDGET_BYTES[backend],
                "seconds": bench.plan.seconds,
                "rows": bench.plan.rows,
            }
            return run_child({**wanted, "folder": str(folder)}, backend=backend)

        cases = ("constant", "arrays", "memfit")
        done = run_in_turn(cases, fit, bench.plan.rounds, cases)
        ceiling, theirs, ours = (done[case] for case in cases)
        if not (isinstance(ceiling, Ran) and isinstance(theirs, Ran) and isinstance(ours, Ran)):
            failed = next(one for one in done.values() if not isinstance(one, Ran))
            rows.append((backend, str(failed), *[""] * 7))
            continue
        times = rate_of(ours) / rate_of(theirs)
        sizes = [(one.peak.anon_bytes + one.peak.file_bytes) / 1e6 for one in (theirs, ours)]
        share = sizes[1] / sizes[0]
        rows.append(
            (
                backend,
                f"{rate_of(ceiling) / 1e3:.0f}",
                f"{rate_of(theirs) / 1e3:.0f}",
                f"{sizes[0]:.0f}",
                f"{FIT_BUDGET_BYTES[backend] / 1e6:.0f}",
                f"{rate_of(ours) / 1e3:.0f}",
                f"{sizes[1]:.0f}",
                f"{times:.2f}x",
                f"{share:.1%}",
            )
        )
        least = LEAST_FIT[backend]
        most = rate_of(ceiling) / rate_of(theirs)
        of_most = f"{backend}: {times:.2f}x arrays, of {most:.2f}x with one batch again and again"
        claims += [
            claim(of_most, f"at least {least:g}x", times >= least),
            claim(
                f"{backend}: {share:.1%} of their memory",
                f"at most {MOST_FIT_MEMORY:.0%}",
                share <= MOST_FIT_MEMORY,
            ),
        ]
    title = f"2. fit of Dense(64), Dense(1) on {bench.plan.rows * ROW_BYTES / 1e6:.0f} MB, ingested"
    return finish(title, rows, claims)


def tabulate_pictures(bench: Bench) -> str:
    """Returns table 5: JPEGs in folders."""
    folder = bench.prepare("pictures", ("pictures",), bench.plan.pictures)

    def read(case: str) -> Ran:
        if case == "keras" and find_spec("tensorflow") is None:
            raise RunFailedError("not installed")
        with tempfile.TemporaryDirectory(dir=bench.folder) as cache:
            return run_child(
                {"what": "pictures", "case": case, "folder": str(folder), "cache": cache},
                backend="tensorflow" if case == "keras" else None,
            )

    done = run_in_turn(
        PICTURE_CASES, read, bench.plan.rounds, tuple(PICTURE_CASES), key="pictures_per_s"
    )
    rows = [("loader", "first pass", "CPU us each", "second pass", "anon MB", "file MB")]
    rates: dict[str, tuple[float, float]] = {}
    for case, one in done.items():
        if not isinstance(one, Ran):
            rows.append((PICTURE_CASES[case], str(one), *[""] * 4))
            continue
        rates[case] = (one.figures["pictures_per_s"], one.figures["again_per_s"])
        rows.append(
            (
                PICTURE_CASES[case],
                f"{rates[case][0]:.0f}/s",
                f"{one.figures['cpu_s'] * 1e6:.0f}",
                f"{rates[case][1]:.0f}/s",
                f"{one.peak.anon_bytes / 1e6:.0f}",
                f"{one.peak.file_bytes / 1e6:.0f}",
            )
        )
    claims = []
    if "memfit" in rates:
        first, second = rates.pop("memfit")
        for case, (rate, _) in rates.items():
            times = first / rate
            claims.append(
                claim(f"{times:.2f}x {PICTURE_CASES[case]}", "at least its rate", times >= 1)
            )
        times = second / first
        claims.append(
            claim(
                f"second pass {times:.1f}x as fast",
                f"at least {LEAST_TIMES_SECOND:g}x",
                times >= LEAST_TIMES_SECOND,
            )
        )
    title = f"5. {bench.plan.pictures:,} JPEGs of 64 x 64, found, decoded and shuffled"
    return finish(title, rows, claims)
