"""The three figures that the examples of the seeds are measured by, each with its aim."""

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from overhead import render_rows, show_mb
from seeds_runs import SEEDS, Ran, Runner

from memfit.diagnose.growth.trend import fit_slope

# The aims.
MOST_PEAK_SHARE = 0.1
MOST_WEIGHT_DIFFERENCE = 1e-6
MOST_MODEL_BYTES = 300_000

Runs = dict[tuple[str, str, str], Ran]
ACCUMULATION = SEEDS / "accumulation"
WAYS = ("32", "128", "made-to-run", "micro-batches-32", "micro-batches-8")
_UPDATE = re.compile(r"^update \| (.+) \| (.+) \| (\S+) \| (\S+)$", re.MULTILINE)
_ADDED = re.compile(r"^added bytes (\d+)$", re.MULTILINE)


def say(is_reached: bool) -> str:
    """Writes whether an aim is reached."""
    return "reached" if is_reached else "missed"


def figure_arrays(backends: Sequence[str], runs: Runs, idle: dict[str, Ran]) -> str:
    """Returns figure 1: the rows of seed 000's example 1 from disk."""
    rows = [("backend", "above runtime, as given", "with memfit", "share", "time", "fit", "aim")]
    for backend in backends:
        given, memfit = (runs["arrays", way, backend] for way in ("as_given", "with_memfit"))
        above = [one.peak_bytes - idle[backend].peak_bytes for one in (given, memfit)]
        share = above[1] / above[0]
        is_reached = share <= MOST_PEAK_SHARE and memfit.seconds <= given.seconds
        rows.append(
            (
                backend,
                show_mb(above[0]),
                show_mb(above[1]),
                f"{share:.1%}",
                f"{given.seconds:.0f} s -> {memfit.seconds:.0f} s",
                f"{given.fit_s:.0f} s -> {memfit.fit_s:.0f} s",
                say(is_reached),
            )
        )
    return (
        "Figure 1. Seed 000, example 1, a million rows with memfit.stream (row `arrays`); aim: at "
        f"most {MOST_PEAK_SHARE:.0%} of the peak above the imported runtime, in no more time\n\n"
        f"{render_rows(rows)}"
    )


def figure_accumulation(backends: Sequence[str], run: Runner) -> str:
    """Returns figure 2: the weights after one update, and the memory of a step."""
    updates = [("backend", "optimizer", "way", "largest difference", "largest step", "aim")]
    for backend in backends:
        ran = run(ACCUMULATION / "one_update.py", backend)
        for optimizer, way, differs, step in _UPDATE.findall(ran.stdout):
            reached = say(float(differs) <= MOST_WEIGHT_DIFFERENCE)
            updates.append((backend, optimizer, way, differs, step, reached))
    steps = [("backend", "places", *WAYS, "micro-batches-8 at most 32's")]
    steps += [measure_steps("tensorflow", "1", run)] if "tensorflow" in backends else []
    steps += [measure_steps(backend, "8000", run) for backend in backends]
    return (
        "Figure 2. Seed 001, method 2, an effective batch of 128 (row `accumulation`); aim: the "
        f"weights of a true batch of 128 to {MOST_WEIGHT_DIFFERENCE:g} after one update\n\n"
        f"{render_rows(updates)}\n\n"
        "and the memory of 32 or less: the peak of a step above the idle process, where the "
        "model is applied to each row once, as given, and to 8000 places of it\n\n"
        f"{render_rows(steps)}"
    )


def measure_steps(backend: str, places: str, run: Runner) -> tuple[str, ...]:
    """Returns a row: what steps of each way add."""
    ways = [way for way in WAYS if way != "made-to-run" or backend == "tensorflow"]
    with ThreadPoolExecutor(2) as pool:
        ran = pool.map(
            lambda way: run(ACCUMULATION / "step_memory.py", backend, [way, places]), ways
        )
    added = {
        way: int(found[1])
        for way, one in zip(ways, ran, strict=True)
        if (found := _ADDED.search(one.stdout))
    }
    cells = (show_mb(added[way]) if way in added else "-" for way in WAYS)
    is_reached = added.get("micro-batches-8", float("inf")) <= added.get("32", 0)
    return backend, places, *cells, say(is_reached)


def figure_models(backends: Sequence[str], runs: Runs) -> str:
    """Returns figure 3: what each of twenty models adds."""
    ways = ("nothing", "as_given", "by_hand", "with_memfit")
    rows = [("backend", "nothing", "clear_session", "and gc.collect", "memfit.session", "aim")]
    for backend in backends:
        each = [per_model(runs["many-models", way, backend]) for way in ways]
        reached = say(each[-1] < MOST_MODEL_BYTES)
        rows.append((backend, *(f"{one / 1e6:.2f} MB" for one in each), reached))
    return (
        "Figure 3. Seed 002, example 2, twenty models in a loop (row `many-models`): what each "
        f"adds; aim: under {MOST_MODEL_BYTES / 1e6:g} MB each with memfit.session()\n\n"
        f"{render_rows(rows)}"
    )


def per_model(ran: Ran) -> float:
    """Returns the slope over the models, the first third left out: they warm up."""
    levels = ran.levels[len(ran.levels) // 3 :]
    return fit_slope(levels).middle if len(levels) > 1 else float("nan")
