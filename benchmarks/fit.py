"""Measures what memfit does to make a training fit, beside plain Keras.

    python benchmarks/fit.py [--quick] [--tables=1,3] [--backends=torch,jax] [--models=conv]

Every measurement is a process of its own (`fit_training.py`). Where time is compared, plain and
memfit run in turn and nothing else does; elsewhere one measurement a core. Tables go to stdout,
progress to stderr. Linux only.
"""

import argparse
import contextlib
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fit_cases import CASES, Case
from overhead import OtherWork, explain, find_version, render_rows, show_mb, tell

from memfit.fitting.size_search import even_size

BACKENDS = ("tensorflow", "torch", "jax")
MODELS = tuple(case.name for case in CASES)
TABLES = ("1", "2", "3", "4")
TRAINING = Path(__file__).with_name("fit_training.py")
TIMEOUT_S = 300.0
GROUPS = (  # control groups of version 1, then 2: where they are, the file of their limit
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
    (Path("/sys/fs/cgroup"), "memory.max"),
)

# The aims.
LEAST_PEAK_RATIO, MOST_TIME_RATIO = 4.0, 1.3
LEAST_BATCH_RATIO = 5
LEAST_SAVED_SHARE, MOST_MORE_TIME = 0.3, 0.2
LEAST_SIZE_SHARE, MOST_FAILED_TRIALS = 0.9, 5

MICRO_BATCHES = 16
SAVED_SHARE = 0.4
# How much more than plain Keras's largest batch is tried with memfit, until one does not fit.
BATCH_RATIOS = (5, 10)
# Budgets of a case lie at least so far apart, as a share of the lowest.
LEAST_SPAN = 0.1
# Sizes tried to tell whether larger micro-batches than memfit's fit.
MOST_CONFIRMED = 2


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured.

    Attributes:
        rounds: Processes of each way, where time is compared.
        steps: Timed steps of a process.
        headroom_bytes: Of the fixed budget, what is above the idle process.
        precision: How near the largest batch is searched.
        batch_divisor: All but micro-batches is measured with batches smaller by this, to save time.
        fractions: Budgets, from what the least micro-batches need (0) to what whole batches do (1);
            slow cases get every other.
        sizes: Micro-batches of fixed size to compare with, as parts of a batch.
    """

    rounds: int = 2
    steps: int = 4
    headroom_bytes: int = 500_000_000
    precision: float = 0.15
    batch_divisor: int = 2
    fractions: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 0.95, 1.15)
    sizes: tuple[int, ...] = (64, 16, 4, 2, 1)


QUICK = Plan(
    rounds=1,
    steps=3,
    headroom_bytes=250_000_000,
    precision=0.5,
    batch_divisor=1,
    fractions=(0.5, 1.15),
    sizes=(16, 4, 1),
)


@dataclass(frozen=True, slots=True)
class Pair:
    """A case on a backend.

    Attributes:
        backend: The backend.
        case: The model.
        batch_size: Samples in a batch.
    """

    backend: str
    case: Case
    batch_size: int

    def __str__(self) -> str:
        return f"{self.case.name} on {self.backend}"

    @property
    def cells(self) -> tuple[str, str]:
        """Returns the first cells of its rows."""
        return self.backend, self.case.name


class RunFailedError(RuntimeError):
    """A measurement ended badly."""


# ---- running


def run(pair: Pair, way: str, *, limit_bytes: int | None = None, **wanted: Any) -> dict[str, Any]:
    """Returns the figures of one process; `wanted` is told in `fit_training.Wanted`.

    Raises:
        RunFailedError: If it does not end well.
    """
    wanted = {"way": way, "case": pair.case.name, "batch_size": pair.batch_size, **wanted}
    with tempfile.TemporaryDirectory() as cache, limited_group(limit_bytes) as group:
        wanted["is_limited"] = limit_bytes is not None and group is None
        try:
            done = subprocess.run(
                [sys.executable, str(TRAINING), json.dumps(wanted)],
                env={
                    **os.environ,
                    "KERAS_BACKEND": pair.backend,
                    "TF_CPP_MIN_LOG_LEVEL": "3",
                    "XDG_CACHE_HOME": cache,  # where memfit would remember an earlier run
                },
                capture_output=True,
                check=False,
                text=True,
                timeout=TIMEOUT_S,
                preexec_fn=None if group is None else lambda: join(group),
            )
        except subprocess.TimeoutExpired:
            raise RunFailedError(f"took more than {TIMEOUT_S:.0f} s") from None
    tell(f"  {pair}: {shorten(wanted)}: {(done.stdout or 'nothing').strip()[:900]}")
    if done.returncode:
        raise RunFailedError(explain(done.returncode, done.stderr))
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def shorten(wanted: dict[str, Any]) -> str:
    """Writes what is asked for in a line of progress."""
    return " ".join(f"{key}={value}" for key, value in wanted.items() if value and key != "case")


@contextlib.contextmanager
def limited_group(limit_bytes: int | None) -> Iterator[Path | None]:
    """A control group with this limit, `None` if there is none to be had."""
    folder = None if limit_bytes is None else make_group(limit_bytes)
    try:
        yield folder
    finally:
        if folder is not None:
            remove_group(folder)


def make_group(limit_bytes: int) -> Path | None:
    """Returns a new control group, `None` if none can be made here."""
    for parent, limit in GROUPS:
        folder = parent / f"memfit-bench-{uuid.uuid4().hex[:8]}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            (folder / limit).write_text(str(limit_bytes))
        except OSError:
            folder.rmdir()
            continue
        with contextlib.suppress(OSError):  # only version 2 has it
            (folder / "memory.swap.max").write_text("0")
        return folder
    return None


def remove_group(folder: Path) -> None:
    """Removes a control group; what ran in it may need a moment to be gone."""
    for _ in range(50):
        try:
            folder.rmdir()
        except OSError:
            time.sleep(0.1)
        else:
            return


def join(group: Path) -> None:
    """Puts this process into a control group."""
    (group / "cgroup.procs").write_text(str(os.getpid()))


def run_in_turn(pair: Pair, plan: Plan, memfit: dict[str, Any]) -> tuple["Steps", "Steps"]:
    """Measures steps without and with memfit, in turn."""
    done: list[list[dict[str, Any]]] = [[], []]
    for number, wanted in itertools.product(range(plan.rounds), ({}, memfit)):
        done[bool(wanted)].append(run(pair, "steps", steps=plan.steps, **wanted))
        tell(f"{pair}: {number + 1}/{plan.rounds}")
    return Steps.of(done[0]), Steps.of(done[1])


def run_beside(work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Works on all items, one a core: for figures of memory, which others do not move."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, items))


@dataclass(frozen=True, slots=True)
class Steps:
    """What steps took.

    Attributes:
        added_bytes: The most above the idle process.
        step_s: The median.
        text: What memfit did to the model.
    """

    added_bytes: float
    step_s: float
    text: str

    @classmethod
    def of(cls, runs: Sequence[dict[str, Any]]) -> "Steps":
        """Returns the medians of some processes."""
        return cls(
            statistics.median(one["added_bytes"] for one in runs),
            statistics.median(itertools.chain(*(one["times_s"] for one in runs))),
            runs[0]["text"],
        )


# ---- tables 1 and 3: micro-batches, recomputation


def tabulate_micro_batches(pairs: Sequence[Pair], plan: Plan) -> str:
    """Returns table 1: the memory and time of a batch as micro-batches."""
    rows = [
        ("backend", "model", "batch", "peak whole", "micro-batches", "ratio", "time", "both aims")
    ]
    for pair in pairs:
        size = -(-pair.batch_size // MICRO_BATCHES)
        try:
            whole, micro = run_in_turn(pair, plan, {"size": size})
        except RunFailedError as error:
            rows.append(fail(pair, str(error), len(rows[0])))
            continue
        ratio = whole.added_bytes / max(1, micro.added_bytes)
        time_ratio = micro.step_s / whole.step_s
        rows.append(
            (
                *pair.cells,
                str(pair.batch_size),
                show_mb(whole.added_bytes),
                show_mb(micro.added_bytes),
                f"{ratio:.1f}x",
                f"{time_ratio:.2f}x",
                say(ratio >= LEAST_PEAK_RATIO and time_ratio <= MOST_TIME_RATIO),
            )
        )
    return finish(
        f"1. Micro-batches: peak of a step above the idle process, whole and as {MICRO_BATCHES}",
        rows,
        f"reach {LEAST_PEAK_RATIO:g}x less memory in at most {MOST_TIME_RATIO:g}x the time",
    )


def tabulate_recomputing(pairs: Sequence[Pair], plan: Plan) -> str:
    """Returns table 3: the memory and time of recomputation."""
    rows = [("backend", "model", "batch", "peak plain", "recomputed", "lower", "time", "both aims")]
    words = []
    for pair in pairs:
        try:
            plain, memfit = run_in_turn(pair, plan, {"saved_share": SAVED_SHARE})
        except RunFailedError as error:
            rows.append(fail(pair, str(error), len(rows[0])))
            continue
        lower = 1 - memfit.added_bytes / plain.added_bytes
        more_time = memfit.step_s / plain.step_s - 1
        words.append(f"{pair}: {memfit.text}")
        rows.append(
            (
                *pair.cells,
                str(pair.batch_size),
                show_mb(plain.added_bytes),
                show_mb(memfit.added_bytes),
                f"{lower:.0%}",
                f"{more_time:+.0%}",
                say(lower >= LEAST_SAVED_SHARE and more_time <= MOST_MORE_TIME),
            )
        )
    aim = f"reach {LEAST_SAVED_SHARE:.0%} lower for at most {MOST_MORE_TIME:.0%} more time"
    title = f"3. Recomputation, asked to save {SAVED_SHARE:.0%} of the activations"
    return "\n".join([finish(title, rows, aim), "", *words])


# ---- table 2: the largest batch


def tabulate_batches(pairs: Sequence[Pair], plan: Plan) -> str:
    """Returns table 2: the largest batch within a budget.

    The data is one batch, and it counts. Of the dense net a sample of the data takes nearly as much
    as its activations, so no way of training reaches the aim there.
    """
    head = (
        "backend",
        "model",
        "budget",
        "plain batch",
        "memfit batch",
        "ratio",
        "last tried",
        "aim",
    )
    rows = run_beside(lambda pair: compare_batches(pair, plan, len(head)), pairs)
    return finish(
        f"2. The largest batch within a budget, {show_mb(plan.headroom_bytes)} above the idle "
        "process",
        [head, *rows],
        f"reach a batch {LEAST_BATCH_RATIO}x as large",
    )


def compare_batches(pair: Pair, plan: Plan, num_cells: int) -> tuple[str, ...]:
    """Returns a row: the largest batch without and with memfit."""
    try:
        budget_bytes = run(pair, "fit", batch_size=1)["idle_bytes"] + plan.headroom_bytes
        plain = find_largest_batch(pair, budget_bytes, plan)
    except RunFailedError as error:
        return fail(pair, str(error), num_cells)
    ratio, words = 0, ""
    for tried in BATCH_RATIOS if plain else ():
        fits, words = fit_batch(pair, tried * plain, budget_bytes)
        if not fits:
            break
        ratio = tried
    return (
        *pair.cells,
        show_mb(budget_bytes),
        str(plain),
        str(ratio * plain) if ratio else "-",
        f"{ratio}x or more" if ratio else f"under {BATCH_RATIOS[0]}x",
        words,
        say(ratio >= LEAST_BATCH_RATIO),
    )


def find_largest_batch(pair: Pair, budget_bytes: int, plan: Plan) -> int:
    """Returns the largest batch of plain Keras: doubles, then bisects."""

    def fits(batch_size: int) -> bool:
        done = run(pair, "fit", batch_size=batch_size)
        return bool(done["peak_bytes"] <= budget_bytes)

    fitting, too_large = 0, max(1, pair.batch_size // 16)
    while fits(too_large):
        fitting, too_large = too_large, 2 * too_large
    while too_large - fitting > max(1, plan.precision * too_large):
        middle = (fitting + too_large) // 2
        fitting, too_large = (middle, too_large) if fits(middle) else (fitting, middle)
    return fitting


def fit_batch(pair: Pair, batch_size: int, budget_bytes: int) -> tuple[bool, str]:
    """Returns whether memfit keeps the budget with this batch, and what it did."""
    try:
        done = run(pair, "within", batch_size=batch_size, budget_bytes=budget_bytes)
    except RunFailedError as error:
        return False, f"{batch_size}: {error}"
    how = f"micro-batches of {done['size']}" if done["size"] else "refused"
    words = f"{batch_size}: {how}, peak {show_mb(done['peak_bytes'])}"
    return bool(done["size"] and done["peak_bytes"] <= budget_bytes), words


# ---- table 4: budgets


@dataclass(frozen=True, slots=True)
class Curve:
    """What fixed sizes of micro-batches need.

    Attributes:
        points: Each size and its peak, by size; the last is the whole batch.
    """

    points: tuple[tuple[int, int], ...]

    def budget(self, fraction: float) -> int:
        """Returns a budget from the least to what a whole batch needs, or somewhat further.

        Where micro-batches save almost nothing, budgets would else lie too near each other.
        """
        least_bytes, most_bytes = self.points[0][1], self.points[-1][1]
        return round(
            least_bytes + fraction * max(most_bytes - least_bytes, LEAST_SPAN * least_bytes)
        )

    def largest(self, budget_bytes: int) -> int:
        """Returns about the largest size that fits, by the line to the next; 0 for none."""
        fitting = [point for point in self.points if point[1] <= budget_bytes]
        if not fitting:
            return 0
        size, peak_bytes = fitting[-1]
        above = [point for point in self.points if point[0] > size]
        if not above:
            return size
        next_size, next_bytes = above[0]
        share = (budget_bytes - peak_bytes) / (next_bytes - peak_bytes)
        return size + int(share * (next_size - size))


@dataclass(frozen=True, slots=True)
class Budgeted:
    """A training within a budget.

    Attributes:
        peak_bytes: The most of the whole process, trials included; `None` if it was killed.
        size: The micro-batch that memfit chose; 0 if it refused to train.
        largest: The largest micro-batch that keeps the budget.
        trials: Steps that memfit tried.
        failed: Those of them that took more than the budget.
        took_s: How long `fit` took.
    """

    peak_bytes: int | None
    size: int = 0
    largest: int = 0
    trials: int = 0
    failed: int = 0
    took_s: float = 0.0


def tabulate_budgets(pairs: Sequence[Pair], plan: Plan) -> str:
    """Returns table 4: whether budgets are kept, and how well they are used.

    A control group does not count pages of libraries that others have loaded before, so it kills
    late; what is judged is the resident memory, which counts them.
    """
    curves = run_beside(lambda pair: measure_curve(pair, plan), pairs)
    cases = [
        (pair, curve, curve.budget(fraction))
        for pair, curve in zip(pairs, curves, strict=True)
        if curve is not None
        for fraction in plan.fractions[:: 2 if pair.case.is_slow else 1]
    ]
    done = run_beside(lambda case: fit_within(*case), cases)
    head = ("backend", "model", "budget", "whole needs", "peak", "kept", "size", "largest")
    head += ("share", "trials", "failed", "fit", "all aims")
    rows = [
        fail(pair, "no micro-batch of fixed size could be measured", len(head))
        for pair, curve in zip(pairs, curves, strict=True)
        if curve is None
    ]
    rows += [make_budget_row(*case, one) for case, one in zip(cases, done, strict=True)]
    group = make_group(10**9)
    if group is not None:
        remove_group(group)
    by = "a limit on its data" if group is None else "a control group"
    aims = f"keep the budget with {LEAST_SIZE_SHARE:.0%} of the largest size and at most "
    aims += f"{MOST_FAILED_TRIALS} failed trials"
    return "\n".join(
        [
            finish(f"4. Budgets, each process held to it by {by}", [head, *rows], aims),
            describe_budgets(cases, done),
        ]
    )


def measure_curve(pair: Pair, plan: Plan) -> Curve | None:
    """Measures micro-batches of fixed size."""
    sizes = sorted({max(1, pair.batch_size // part) for part in plan.sizes})
    points = []
    for size in sizes:
        wanted = {} if size == pair.batch_size else {"size": size}
        with contextlib.suppress(RunFailedError):
            points.append((size, run(pair, "fit", **wanted)["peak_bytes"]))
    return Curve(tuple(points)) if len(points) > 1 else None


def fit_within(pair: Pair, curve: Curve, budget_bytes: int) -> Budgeted:
    """Trains within a budget, and looks whether larger micro-batches would have kept it."""
    try:
        done = run(pair, "within", limit_bytes=budget_bytes, budget_bytes=budget_bytes)
    except RunFailedError:
        return Budgeted(None, largest=curve.largest(budget_bytes))
    size = done["size"] or 0
    failed = [peak for _, peak, failed in done["trials"] if failed or peak > budget_bytes]
    return Budgeted(
        peak_bytes=done["peak_bytes"],
        size=size,
        largest=confirm_largest(pair, size, curve.largest(budget_bytes), budget_bytes),
        trials=len(done["trials"]),
        failed=len(failed),
        took_s=done["took_s"],
    )


def confirm_largest(pair: Pair, size: int, largest: int, budget_bytes: int) -> int:
    """Returns the largest size that was seen to fit, where memfit's is well below it.

    The curve says about which; it may be wrong, so sizes between the two follow. Of sizes that make
    the same number of micro-batches the smallest stands for all, as it does in memfit.
    """
    largest = make_even(pair, largest)
    if size >= LEAST_SIZE_SHARE * largest:
        return max(size, largest)
    tried, too_large = largest, None
    for _ in range(MOST_CONFIRMED):
        wanted = {} if tried == pair.batch_size else {"size": tried}
        try:
            fits = run(pair, "fit", **wanted)["peak_bytes"] <= budget_bytes
        except RunFailedError:
            fits = False
        size, too_large = (tried, too_large) if fits else (size, tried)
        if too_large is None or size >= LEAST_SIZE_SHARE * too_large:
            break
        tried = make_even(pair, (size + too_large) // 2)
    return size


def make_even(pair: Pair, size: int) -> int:
    """Returns the smallest size that makes as many micro-batches."""
    return even_size(size, pair.batch_size) if size else 0


def make_budget_row(pair: Pair, curve: Curve, budget_bytes: int, one: Budgeted) -> tuple[str, ...]:
    """Returns a row of table 4."""
    return (
        *pair.cells,
        show_mb(budget_bytes),
        show_mb(curve.points[-1][1]),
        "killed" if one.peak_bytes is None else show_mb(one.peak_bytes),
        say(is_kept(one, budget_bytes)),
        str(one.size) if one.size else "refused",
        str(one.largest),
        f"{share(one):.0%}",
        str(one.trials),
        str(one.failed),
        f"{one.took_s:.1f} s",
        say(is_kept(one, budget_bytes) and is_used(one) and one.failed <= MOST_FAILED_TRIALS),
    )


def is_kept(one: Budgeted, budget_bytes: int) -> bool:
    """Returns whether the process stayed within its budget all the time."""
    return one.peak_bytes is not None and one.peak_bytes <= budget_bytes


def is_used(one: Budgeted) -> bool:
    """Returns whether the budget was made good use of."""
    return share(one) >= LEAST_SIZE_SHARE


def share(one: Budgeted) -> float:
    """Returns the chosen size as a share of the largest; to refuse is right if nothing fits."""
    return one.size / one.largest if one.largest else 1.0


def describe_budgets(cases: Sequence[tuple[Pair, Curve, int]], done: Sequence[Budgeted]) -> str:
    """Returns the line with one number for each aim."""
    kept = sum(is_kept(one, case[2]) for case, one in zip(cases, done, strict=True))
    used = sum(is_used(one) for one in done)
    few = sum(one.failed <= MOST_FAILED_TRIALS for one in done)
    killed = sum(one.peak_bytes is None for one in done)
    return (
        f"{kept} of {len(done)} kept the budget ({killed} ended before that); {used} took "
        f"{LEAST_SIZE_SHARE:.0%} of the largest size or more; {few} had at most "
        f"{MOST_FAILED_TRIALS} failed trials, the most was {max(one.failed for one in done)}."
    )


# ---- the whole


def fail(pair: Pair, reason: str, num_cells: int) -> tuple[str, ...]:
    """Returns a row that says why there are no figures."""
    cells = (*pair.cells, f"failed: {reason}")
    return (*cells, *("" for _ in range(num_cells - len(cells) - 1)), say(is_reached=False))


def say(is_reached: bool) -> str:
    """Writes a claim."""
    return "yes" if is_reached else "no"


def finish(title: str, rows: Sequence[tuple[str, ...]], aim: str) -> str:
    """Returns a table with its title, and how many rows reach the aim."""
    reached = sum(row[-1] == "yes" for row in rows[1:])
    return f"{title}\n\n{render_rows(rows)}\n\n{reached} of {len(rows) - 1} rows {aim}."


def choose_pairs(args: argparse.Namespace, divisor: int = 1) -> list[Pair]:
    """Returns what is asked for, with batches smaller by `divisor`."""
    return [
        Pair(backend, case, (case.quick_batch_size if args.quick else case.batch_size) // divisor)
        for backend in args.backends
        for case in CASES
        if backend in case.backends and case.name in args.models
    ]


def parse_arguments() -> argparse.Namespace:
    """Returns the arguments of this script."""
    parser = argparse.ArgumentParser(description="Measures how memfit makes trainings fit.")
    parser.add_argument("--quick", action="store_true", help="few small cases, to try it out")
    for name, known in (("tables", TABLES), ("backends", BACKENDS), ("models", MODELS)):
        parser.add_argument(
            f"--{name}",
            type=lambda text, known=known: pick(text, known),
            default=known,
            help=f"some of {','.join(known)}",
        )
    return parser.parse_args()


def pick(text: str, known: Sequence[str]) -> list[str]:
    """Returns the names in `text`, which are separated by commas."""
    unknown = [name for name in text.split(",") if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
    return text.split(",")


def main() -> None:
    """Measures and prints."""
    args = parse_arguments()
    plan = QUICK if args.quick else Plan()
    others, begun_s = OtherWork(), time.monotonic()
    pairs = choose_pairs(args)
    smaller = choose_pairs(args, plan.batch_divisor)
    # Recomputation keeps what blocks hand on; the dense net has nothing else.
    in_blocks = [pair for pair in smaller if pair.case.name != "dense"]
    tables: dict[str, Callable[[], str]] = {
        "1": lambda: tabulate_micro_batches(pairs, plan),
        "2": lambda: tabulate_batches(smaller, plan),
        "3": lambda: tabulate_recomputing(in_blocks, plan),
        "4": lambda: tabulate_budgets(smaller, plan),
    }
    versions = ", ".join(
        f"{name} {find_version(name)}" for name in ("memfit", "keras", *args.backends)
    )
    print(f"{versions}, Python {platform.python_version()}, {os.cpu_count()} cores")
    for number in args.tables:
        print(f"\n{tables[number]()}", flush=True)
    took_min = (time.monotonic() - begun_s) / 60
    print(f"\nTook {took_min:.0f} min; other processes took {others.share():.0%} of the machine.")


if __name__ == "__main__":
    main()
