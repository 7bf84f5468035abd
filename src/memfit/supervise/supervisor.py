"""Runs a script in a process of its own and records its memory from outside."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memfit.budget import Budget
from memfit.failsafe import harmless
from memfit.measure.limits import Limit, find_limit
from memfit.measure.pressure import count_machine_oom_kills
from memfit.record.evidence import Hinted
from memfit.record.handover import Handover, sample_every_s
from memfit.record.header import make_header
from memfit.record.jsonl import Writer
from memfit.record.run_folder import SUPERVISOR_FILE
from memfit.record.samples import Exit, Header, Sample
from memfit.supervise.child_process import Child
from memfit.supervise.lint_script import lint_files, read_script_files
from memfit.supervise.process_sampler import ProcessSampler
from memfit.supervise.signals import SignalRelay

_BOOT_FOLDER = Path(__file__).parents[1] / "agent" / "boot"


@dataclass(frozen=True, slots=True)
class Watched:
    """What the supervisor passes on while the script runs.

    Attributes:
        sample: The newest reading.
        error: Why the recording cannot be written, if it cannot.
    """

    sample: Sample
    error: OSError | None = None


class Supervisor:
    """Runs one command and records it.

    Args:
        command: Arguments for Python: a script or `-m` and a module, and what follows.
        run: Folder of the run.
        adds_logs: Whether memory figures go into Keras's logs.
        budget: What every `fit` may take.
        limit_bytes: Judge against this limit if it is lower than every limit in force.
        reads_proportional: Whether PSS and USS are read too, every five seconds.
    """

    def __init__(
        self,
        command: Sequence[str],
        run: Path,
        *,
        adds_logs: bool = False,
        budget: Budget | None = None,
        limit_bytes: int | None = None,
        reads_proportional: bool = False,
    ) -> None:
        self._command = tuple(command)
        self._writer = Writer(run / SUPERVISOR_FILE)
        self._handover = Handover(run, os.getpid(), adds_logs, budget)
        self._limit_bytes = limit_bytes
        self._sampler = ProcessSampler(reads_proportional=reads_proportional)

    def run(self, on_sample: Callable[[Watched], None]) -> Exit:
        """Runs the command to its end and returns how it ended.

        Args:
            on_sample: Called with every reading.
        """
        machine_kills = count_machine_oom_kills()
        hints = lint_files(read_script_files(self._command))
        look = harmless(self._look)  # if this process ended, the kernel would end the script
        with SignalRelay() as relay:
            child = Child([sys.executable, *self._command], _make_environment(self._handover))
            relay.connect(child.send)
            self._writer.append(self._header(child.pid))
            self._sampler.attach(child.pid)
            group_kills = self._sampler.count_group_oom_kills()
            begun_s = time.monotonic()
            while (ended := child.wait(sample_every_s(time.monotonic() - begun_s))) is None:
                look(on_sample, hints)
        exited = Exit(
            t_s=time.monotonic(),
            code=ended.code,
            signal=ended.signal,
            peak_rss_bytes=ended.peak_rss_bytes,
            group_oom_kills=_difference(self._sampler.count_group_oom_kills(), group_kills),
            machine_oom_kills=_difference(count_machine_oom_kills(), machine_kills),
        )
        self._writer.append(exited)
        self._writer.close()
        return exited

    def _look(
        self, on_sample: Callable[[Watched], None], hints: Iterator[Sequence[Hinted]]
    ) -> None:
        """Takes a reading, and what lint says of one more file: samples do not wait for it."""
        sample = self._sampler.take()
        if sample is not None:
            self._writer.append(sample)
            on_sample(Watched(sample, self._writer.error))
        for hint in next(hints, ()):
            self._writer.append(hint)

    def _header(self, child_pid: int) -> Header:
        limit, budget = self._find_limit(child_pid), self._handover.budget
        return make_header("supervisor", self._command, limit=limit, budget=budget)

    def _find_limit(self, pid: int) -> Limit:
        limit = find_limit(pid)
        if self._limit_bytes is not None and self._limit_bytes < limit.limit_bytes:
            return Limit(self._limit_bytes, "asked for")
        return limit


def run_unrecorded(command: Sequence[str], budget: Budget | None) -> Exit:
    """Runs a command where no recording can be written, within its budget if it has one."""
    environment: dict[str, str] = dict(os.environ)
    if budget is not None:
        environment = _make_environment(Handover(Path(os.devnull), os.getpid(), budget=budget))
    with SignalRelay() as relay:
        child = Child([sys.executable, *command], environment)
        relay.connect(child.send)
        while (ended := child.wait(timeout_s=60.0)) is None:
            pass
    return Exit(time.monotonic(), ended.code, ended.signal, ended.peak_rss_bytes)


def _make_environment(handover: Handover) -> dict[str, str]:
    """The user's environment, and what loads the agent into every Python below."""
    paths = [str(_BOOT_FOLDER), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        **handover.to_environment(),
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
    }


def _difference(after: int | None, before: int | None) -> int | None:
    return None if after is None or before is None else after - before
