"""Measures what `memfit run` costs a training, beside memray and scalene.

    python benchmarks/overhead.py [--quick] [--backend NAME]

Every figure compares runs of one invocation, made in turn: plain, memfit, plain, memfit, ...
Tables go to stdout, progress to stderr. Linux only.
"""

import argparse
import importlib.metadata
import itertools
import json
import os
import platform
import pty
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BACKENDS = ("tensorflow", "jax", "torch")
TRAINING = Path(__file__).with_name("training.py")
_LOG_LINE = re.compile(r"[IWEF]\d{4} ")  # as TensorFlow and JAX write them
ONE_LINE = "import time; print('{\"first_line_s\": %r}' % time.time())\n"
MOST_HELP_S = 0.3  # a target, like the limits of the figures below


@dataclass(frozen=True, slots=True)
class Tool:
    """A way to run a script.

    Attributes:
        name: What the tables call it.
        prefix: Arguments for Python before the script; `{out}` stands for an empty folder.
        leaves: A file that a training leaves in that folder if the tool has worked.
    """

    name: str
    prefix: tuple[str, ...] = ()
    leaves: str = ""

    def arguments(self, out: Path) -> list[str]:
        """Returns the arguments for Python that come before the script."""
        return [argument.format(out=out) for argument in self.prefix]


PLAIN = Tool("plain")
MEMFIT = Tool("memfit", ("-m", "memfit", "run", "--out", "{out}"), "agent-*.jsonl")
OTHERS = (
    Tool("memray", ("-m", "memray", "run", "--quiet", "--force", "-o", "{out}/m.bin"), "m.bin"),
    Tool("scalene", ("-m", "scalene", "run", "-o", "{out}/s.json"), "s.json"),
)
TOOLS = (PLAIN, MEMFIT, *OTHERS)


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured.

    Attributes:
        trainings: Trainings with memfit, and as many without.
        starts: Starts of a script of one line, likewise.
        others: Trainings with each of the other tools; scalene takes a minute or two for one.
        epochs: Timed epochs of a training.
        other_epochs: The same with the other tools; under scalene memory grows with each step.
        steps: Steps of an epoch.
        timeout_s: The longest that one run may take.
    """

    trainings: int = 8
    starts: int = 15
    others: int = 1
    epochs: int = 8
    other_epochs: int = 3
    steps: int = 400
    timeout_s: float = 240.0


QUICK = Plan(trainings=3, starts=5, others=0, epochs=4, steps=200, timeout_s=60.0)


@dataclass(frozen=True, slots=True)
class Training:
    """What one training told: see `training.py`, where it comes from."""

    start_s: float
    step_s: float
    fastest_step_s: float
    rss_bytes: int
    peak_rss_bytes: int
    parent_cpu_share: float
    loaded_before: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """A run without a result, and why in a few words."""

    reason: str


# By name of the tool, in the order of the rounds: `Training`, seconds, or `Failed`.
Results = dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of a table.

    Attributes:
        name: What is measured.
        read: Takes it from a result.
        show: Writes it, or a difference of two.
        is_share: Whether runs are compared by their ratio, not by their difference.
        limit: The target: the most that memfit may add.
    """

    name: str
    read: Callable[[Any], float]
    show: Callable[[float], str]
    is_share: bool = False
    limit: float | None = None

    def added(self, plain: Any, other: Any) -> float:
        """Returns what `other` has more than `plain`."""
        before, after = self.read(plain), self.read(other)
        return after / before - 1 if self.is_share else after - before

    def show_added(self, value: float) -> str:
        """Writes what `added` returns, with its sign."""
        if self.is_share:
            return f"{value:+.1%}"
        return f"{'-' if value < 0 else '+'}{self.show(abs(value))}"


def show_ms(value: float) -> str:
    """Writes a time of milliseconds."""
    return f"{value * 1e3:.2f} ms"


def show_s(value: float) -> str:
    """Writes a time of seconds."""
    return f"{value:.2f} s"


def show_mb(value: float) -> str:
    """Writes a size; a MB is 10**6 bytes."""
    return f"{value / 1e6:.0f} MB" if value >= 1e8 else f"{value / 1e6:.1f} MB"


START = Figure("time before the first line", float, show_s, limit=0.5)
STEP = Figure("time of a step", lambda one: one.step_s, show_ms, is_share=True, limit=0.01)
# Least disturbed by others, and still long enough to hold what memfit does every half second.
FASTEST_STEP = Figure("same, fastest epoch", lambda one: one.fastest_step_s, show_ms, is_share=True)
END_MEMORY = Figure("memory at the end", lambda one: one.rss_bytes, show_mb, limit=25e6)
PEAK_MEMORY = Figure("highest memory", lambda one: one.peak_rss_bytes, show_mb)


class RunFailedError(RuntimeError):
    """A run ended badly, took too long, or its tool left nothing."""


# ---- running


@dataclass(frozen=True, slots=True)
class Ran:
    """A run that ended well.

    Attributes:
        begun_s: Seconds since 1970 just before the process was started.
        wall_s: How long it took.
        stdout: What it printed.
    """

    begun_s: float
    wall_s: float
    stdout: str

    def told(self) -> dict[str, Any]:
        """Returns the JSON that the script printed; tools may print more before and after."""
        lines = [line for line in self.stdout.splitlines() if line.startswith("{")]
        if not lines:
            raise RunFailedError("the script printed no figures")
        result: dict[str, Any] = json.loads(lines[-1])
        return result


def run_python(arguments: Sequence[str], backend: str, folder: Path, timeout_s: float) -> Ran:
    """Runs Python to its end.

    Its stderr is a terminal, so that memfit shows its live line as it does for a user.

    Raises:
        RunFailedError: If it does not end well within `timeout_s`.
    """
    ours, theirs = pty.openpty()
    environment = {**os.environ, "KERAS_BACKEND": backend, "TERM": "xterm"}
    begun_s = time.time()
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env={"TF_CPP_MIN_LOG_LEVEL": "3", **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        start_new_session=True,
    )
    os.close(theirs)
    messages = Drain(ours)
    try:
        stdout, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the tool and the training below it
        process.communicate()
        raise RunFailedError(f"took more than {timeout_s:.0f} s") from None
    wall_s = time.time() - begun_s
    if process.returncode:
        raise RunFailedError(explain(process.returncode, messages.text()))
    return Ran(begun_s, wall_s, stdout)


class Drain:
    """Reads a terminal until nobody writes to it, and keeps the end of it.

    Args:
        descriptor: Our side of the terminal; it is closed at the end.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._kept = b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def text(self) -> str:
        """Returns the last that was written."""
        self._thread.join(timeout=1.0)
        return self._kept.decode(errors="replace")

    def _read(self) -> None:
        try:
            while piece := os.read(self._descriptor, 65536):
                self._kept = (self._kept + piece)[-4000:]
        except OSError:  # how Linux says that the last writer has closed it
            pass
        os.close(self._descriptor)


def explain(code: int, messages: str) -> str:
    """Returns in a few words why a process ended with `code`."""
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    lines = [line.strip() for line in messages.splitlines() if line.strip()]
    telling = [line for line in lines if "rror" in line and not _LOG_LINE.match(line)]
    return telling[-1][:70] if telling else f"exit code {code}"


# ---- measuring


def measure_help(plan: Plan) -> float:
    """Returns the time of `memfit --help`."""
    with tempfile.TemporaryDirectory() as folder:
        times_s = [
            run_python(["-m", "memfit", "--help"], "jax", Path(folder), plan.timeout_s).wall_s
            for _ in range(plan.starts)
        ]
    return statistics.median(times_s)


def measure_start(tool: Tool, backend: str, plan: Plan) -> float:
    """Returns the time from starting the process to the first line of a script."""
    with tempfile.TemporaryDirectory() as folder:
        script, out = Path(folder) / "one_line.py", Path(folder) / "out"
        script.write_text(ONE_LINE)
        out.mkdir()
        arguments = [*tool.arguments(out), str(script)]
        ran = run_python(arguments, backend, Path(folder), plan.timeout_s)
    return float(ran.told()["first_line_s"]) - ran.begun_s


def measure_training(tool: Tool, backend: str, width: int, plan: Plan) -> Training:
    """Trains under `tool`."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        out.mkdir()
        epochs = plan.other_epochs if tool in OTHERS else plan.epochs
        settings = (str(number) for number in (width, epochs, plan.steps))
        arguments = [*tool.arguments(out), str(TRAINING), *settings]
        ran = run_python(arguments, backend, Path(folder), plan.timeout_s)
        if tool.leaves and not any(path.stat().st_size for path in out.glob(tool.leaves)):
            raise RunFailedError("it recorded nothing")
    told = ran.told()
    return Training(
        start_s=told["first_line_s"] - ran.begun_s,
        step_s=statistics.median(told["epoch_s"]) / told["steps"],
        fastest_step_s=min(told["epoch_s"]) / told["steps"],
        rss_bytes=told["rss_bytes"],
        peak_rss_bytes=told["peak_rss_bytes"],
        parent_cpu_share=told["parent_cpu_s"] / sum(told["epoch_s"]),
        loaded_before=tuple(told["loaded_before"]),
    )


def calibrate(backend: str, plan: Plan) -> int:
    """Returns the width of layers for steps of about 2 ms; also warms the disk's cache."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = [str(TRAINING), "calibrate"]
        return int(run_python(arguments, backend, Path(folder), plan.timeout_s).told()["width"])


def measure_in_turn(measure: Callable[[Tool], Any], rounds: int, others: int = 0) -> Results:
    """Measures plain and memfit in turn, `rounds` times; other tools in the first `others`.

    Of another tool that fails one run is enough: it would fail again, and take its time.
    """
    results: Results = {tool.name: [] for tool in TOOLS}
    for number in range(rounds):
        for tool in TOOLS if number < others else (PLAIN, MEMFIT):
            so_far = results[tool.name]
            if tool in OTHERS and so_far and isinstance(so_far[-1], Failed):
                continue
            try:
                result = measure(tool)
            except RunFailedError as error:
                result = Failed(str(error))
            so_far.append(result)
            tell(f"  {number + 1}/{rounds} {tool.name}: {result}")
    return results


def measure_backend(backend: str, plan: Plan) -> str:
    """Measures all on one backend and returns its table, or why there is none."""
    tell(f"{backend}: looking for a model with steps of 2 ms")
    try:
        width = calibrate(backend, plan)
    except RunFailedError as error:
        return f"{backend} failed without any tool: {error}"
    tell(f"{backend}: trainings, layers of {width}")
    trainings = measure_in_turn(
        lambda tool: measure_training(tool, backend, width, plan), plan.trainings, plan.others
    )
    tell(f"{backend}: starts")
    starts = measure_in_turn(lambda tool: measure_start(tool, backend, plan), plan.starts)
    for tool in OTHERS:  # seconds where memfit takes a fraction: their trainings tell enough
        starts[tool.name] = [
            one if isinstance(one, Failed) else one.start_s for one in trainings[tool.name]
        ]
    return make_table(backend, trainings, starts, plan)


def limit_memory() -> None:
    """Lets no run below take more than half of the machine: one of the tools may want it all."""
    half_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    _, hard_bytes = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (half_bytes, hard_bytes))


class OtherWork:
    """What other processes take of this machine, from now on: they make figures unsure."""

    def __init__(self) -> None:
        self._begun_s = time.monotonic()
        self._before_s = self._others_s()

    def share(self) -> float:
        """Returns their share of all processors since this object was made."""
        elapsed_s = (time.monotonic() - self._begun_s) * (os.cpu_count() or 1)
        return max(0.0, (self._others_s() - self._before_s) / elapsed_s)

    @staticmethod
    def _others_s() -> float:
        """CPU time of everybody, less our own and that of our children."""
        first = Path("/proc/stat").read_text().splitlines()[0].split()
        user, nice, system, _idle, _wait, *rest = (int(field) for field in first[1:9])
        busy_s = sum((user, nice, system, *rest)) / os.sysconf("SC_CLK_TCK")
        kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        usages = [resource.getrusage(kind) for kind in kinds]
        return busy_s - sum(usage.ru_utime + usage.ru_stime for usage in usages)


# ---- tables


def make_table(backend: str, trainings: Results, starts: Results, plan: Plan) -> str:
    """Returns the Markdown table of one backend, with notes under it."""
    rows = [
        (backend, "plain", "memfit", "target", "met", *(tool.name for tool in OTHERS)),
        make_row(STEP, trainings),
        make_row(FASTEST_STEP, trainings),
        make_row(START, starts),
        make_row(END_MEMORY, trainings),
        make_row(PEAK_MEMORY, trainings),
        ("supervisor's CPU time", "", show_supervisor(trainings), "", "", "", ""),
        ("noise: step, plain to plain", "", show_noise(trainings), "", "", "", ""),
    ]
    return "\n\n".join([render_rows(rows), *make_notes(trainings, plan)])


def make_row(figure: Figure, results: Results) -> tuple[str, ...]:
    """Returns one row: the plain figure, what each tool adds, and the target."""
    plain = [figure.read(one) for one in results[PLAIN.name] if not isinstance(one, Failed)]
    added = compare(figure, results, MEMFIT)
    limit = figure.limit
    return (
        figure.name,
        figure.show(statistics.median(plain)) if plain else "failed",
        show_cell(figure, added, results[MEMFIT.name]),
        "" if limit is None else f"at most {figure.show_added(limit)}",
        "" if limit is None else judge(added, limit),
        *(show_cell(figure, compare(figure, results, tool), results[tool.name]) for tool in OTHERS),
    )


def compare(figure: Figure, results: Results, tool: Tool) -> list[float]:
    """Returns what `tool` added in each round, against the plain run of the same round."""
    pairs = zip(results[PLAIN.name], results[tool.name], strict=False)
    return [
        figure.added(plain, other)
        for plain, other in pairs
        if not isinstance(plain, Failed) and not isinstance(other, Failed)
    ]


def judge(values: Sequence[float], limit: float) -> str:
    """Says whether a target is met, as far as the middle half of the rounds agree on it."""
    if len(values) < 2:
        return "unknown"
    low, high = quartiles(values)
    if low <= limit < high:
        return "unclear"
    return "yes" if high <= limit else "no"


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """Returns the bounds of the middle half."""
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def show_cell(figure: Figure, values: Sequence[float], results: Sequence[Any]) -> str:
    """Writes the median and the middle half; failures are told, not hidden."""
    reasons = [one.reason for one in results if isinstance(one, Failed)]
    if not values:
        return f"failed: {reasons[0]}" if reasons else "not run here"
    text = figure.show_added(statistics.median(values))
    if len(values) > 1:
        low, high = quartiles(values)
        text += f" ({figure.show_added(low)} to {figure.show_added(high)})"
    return f"{text}; {len(reasons)} failed: {reasons[0]}" if reasons else text


def show_supervisor(trainings: Results) -> str:
    """Writes the CPU time of the supervisor while the training is steady."""
    runs = [one for one in trainings[MEMFIT.name] if not isinstance(one, Failed)]
    if not runs:
        return "unknown"
    return f"{statistics.median(one.parent_cpu_share for one in runs):.1%} of a core"


def show_noise(trainings: Results) -> str:
    """Writes how much the time of a step differs between plain runs, with nothing to explain it."""
    runs = [one for one in trainings[PLAIN.name] if not isinstance(one, Failed)]
    values = [STEP.added(before, after) for before, after in itertools.pairwise(runs)]
    if not values:
        return "unknown"
    low, high = quartiles(values)
    return f"{low:+.1%} to {high:+.1%}"


def make_notes(trainings: Results, plan: Plan) -> list[str]:
    """Returns what a reader must know to compare the tools fairly."""
    steps, other_steps = ((1 + count) * plan.steps for count in (plan.epochs, plan.other_epochs))
    memfit = f"Median and middle half of {plan.trainings} trainings of {steps} steps and of "
    memfit += f"{plan.starts} starts, each with and without memfit."
    others = f"With each other tool: {plan.others} training of {other_steps} steps."
    notes = [f"{memfit} {others}" if plan.others else memfit]
    for tool in OTHERS:
        runs = [one for one in trainings[tool.name] if not isinstance(one, Failed)]
        if runs and runs[0].loaded_before:
            loaded = ", ".join(runs[0].loaded_before)
            notes.append(f"{tool.name} had imported {loaded} before the first line.")
    return notes


def render_rows(rows: Sequence[Sequence[str]]) -> str:
    """Returns a Markdown table that is also straight as plain text."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def describe_software(backends: Sequence[str]) -> str:
    """Returns the first line: what was measured on what."""
    names = ("memfit", "keras", *backends, *(tool.name for tool in OTHERS))
    versions = ", ".join(f"{name} {find_version(name)}" for name in names)
    return f"{versions}, Python {platform.python_version()}, {os.cpu_count()} cores"


def find_version(name: str) -> str:
    """Returns the version of an installed package."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


def describe_help(help_s: float) -> str:
    """Returns the line on `memfit --help`."""
    met = "met" if help_s < MOST_HELP_S else "missed"
    return f"memfit --help: {help_s:.2f} s (target: under {MOST_HELP_S} s, {met})"


def tell(sentence: str) -> None:
    """Shows progress."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {sentence}\n")


def parse_arguments() -> argparse.Namespace:
    """Returns the arguments of this script."""
    parser = argparse.ArgumentParser(description="Measures what `memfit run` costs a training.")
    parser.add_argument("--quick", action="store_true", help="a few repetitions, to try it out")
    parser.add_argument(
        "--backend", action="append", choices=BACKENDS, help="only this one; may be repeated"
    )
    return parser.parse_args()


def main() -> None:
    """Measures and prints."""
    args = parse_arguments()
    plan = QUICK if args.quick else Plan()
    backends = args.backend or BACKENDS
    limit_memory()
    others = OtherWork()
    print(describe_software(backends))
    print(f"\n{describe_help(measure_help(plan))}", flush=True)
    for backend in backends:
        print(f"\n{measure_backend(backend, plan)}", flush=True)
    print(f"\nOther processes took {others.share():.0%} of the machine meanwhile.")


if __name__ == "__main__":
    main()
