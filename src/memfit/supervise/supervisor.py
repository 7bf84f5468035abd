"""Runs a script in a process of its own and records its memory from outside."""

import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import memfit
from memfit.budget import Budget
from memfit.measure.control_group import ControlGroup, find_control_group
from memfit.measure.environment import read_settings
from memfit.measure.limits import Limit, find_limit
from memfit.measure.nvidia import open_nvidia
from memfit.measure.pressure import read_pressure
from memfit.measure.process import (
    ChildMemory,
    ProportionalMemory,
    read_available,
    read_children,
    read_process,
    read_proportional,
)
from memfit.record.handover import Handover, sample_every_s
from memfit.record.jsonl import Writer
from memfit.record.run_folder import SUPERVISOR_FILE
from memfit.record.samples import FORMAT, Exit, Header, Sample
from memfit.supervise.child_process import Child
from memfit.supervise.lint_script import lint_sources, read_sources
from memfit.supervise.signals import SignalRelay

# PSS walks every page of a process and holds up its page faults meanwhile.
PROPORTIONAL_EVERY_S = 5.0
CHILDREN_EVERY_S = 1.5
_BOOT_FOLDER = Path(memfit.__file__).parent / "agent" / "boot"


@dataclass(frozen=True, slots=True)
class Watched:
    """What the supervisor tells while the script runs.

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
        limit_bytes: Judge against this limit if it is below all that are in force.
        reads_proportional: Whether PSS and USS are read too, every five seconds.
    """

    def __init__(
        self,
        command: Sequence[str],
        run: Path,
        *,
        adds_logs: bool = True,
        budget: Budget | None = None,
        limit_bytes: int | None = None,
        reads_proportional: bool = False,
    ) -> None:
        self._command = tuple(command)
        self._writer = Writer(run / SUPERVISOR_FILE)
        self._handover = Handover(run, os.getpid(), adds_logs, budget)
        self._limit_bytes = limit_bytes
        self._reads_proportional = reads_proportional
        self._proportional_t_s = self._children_read_t_s = float("-inf")
        self._nvidia = open_nvidia()

    def run(self, on_sample: Callable[[Watched], None]) -> Exit:
        """Runs the command to its end and returns how it ended.

        Args:
            on_sample: Called with every reading.
        """
        machine_kills = _machine_oom_kills()
        hints = lint_sources(read_sources(self._command))
        with SignalRelay() as relay:
            child = Child([sys.executable, *self._command], self._environment())
            relay.connect(child.send)
            self._writer.append(self._header(child.pid))
            group = find_control_group(child.pid)
            group_kills = _group_oom_kills(group)
            begun_s = time.monotonic()
            while (ended := child.wait(sample_every_s(time.monotonic() - begun_s))) is None:
                sample = self._sample(child.pid, group)
                if sample is not None:
                    self._writer.append(sample)
                    on_sample(Watched(sample, self._writer.error))
                for hint in next(hints, ()):  # one file at a time: samples do not wait for it
                    self._writer.append(hint)
        told = Exit(
            t_s=time.monotonic(),
            code=ended.code,
            signal=ended.signal,
            peak_rss_bytes=ended.peak_rss_bytes,
            group_oom_kills=_difference(_group_oom_kills(group), group_kills),
            machine_oom_kills=_difference(_machine_oom_kills(), machine_kills),
        )
        self._writer.append(told)
        self._writer.close()
        return told

    def _environment(self) -> dict[str, str]:
        """The user's environment, and what loads the agent into every Python below."""
        paths = [str(_BOOT_FOLDER), os.environ.get("PYTHONPATH", "")]
        return {
            **os.environ,
            **self._handover.to_environment(),
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        }

    def _header(self, child_pid: int) -> Header:
        return Header(
            format=FORMAT,
            role="supervisor",
            pid=os.getpid(),
            t_s=time.monotonic(),
            wall_time_s=time.time(),
            memfit=memfit.__version__,
            python=platform.python_version(),
            platform=platform.platform(),
            command=self._command,
            limit=self._find_limit(child_pid),
            settings=read_settings(),
            budget=self._handover.budget,
        )

    def _find_limit(self, pid: int) -> Limit:
        limit = find_limit(pid)
        if self._limit_bytes is not None and self._limit_bytes < limit.limit_bytes:
            return Limit(self._limit_bytes, "asked for")
        return limit

    def _sample(self, pid: int, group: ControlGroup | None) -> Sample | None:
        memory = read_process(pid)
        if memory is None:
            return None
        children = read_children(pid)
        pids = [pid, *(child.pid for child in children)]
        return Sample(
            t_s=time.monotonic(),
            pid=pid,
            process=memory,
            children=children,
            nvidia=self._nvidia.read(pids) if self._nvidia else (),
            control_group=group.read() if group else None,
            available_bytes=read_available(),
            pressure=read_pressure(),
            proportional=self._read_proportional(pids),
            children_own_bytes=self._read_children_own(children),
        )

    def _read_children_own(self, children: Sequence[ChildMemory]) -> int | None:
        """What workers share with nobody: reading it costs the kernel a walk over their pages."""
        now_s = time.monotonic()
        if not children or now_s - self._children_read_t_s < CHILDREN_EVERY_S:
            return None
        self._children_read_t_s = now_s
        readings = [read_proportional(child.pid) for child in children]
        return sum(reading.uss_bytes for reading in readings if reading is not None)

    def _read_proportional(self, pids: Sequence[int]) -> ProportionalMemory | None:
        now_s = time.monotonic()
        if not self._reads_proportional or now_s - self._proportional_t_s < PROPORTIONAL_EVERY_S:
            return None
        self._proportional_t_s = now_s
        readings = [reading for pid in pids if (reading := read_proportional(pid)) is not None]
        return ProportionalMemory(
            pss_bytes=sum(reading.pss_bytes for reading in readings),
            uss_bytes=sum(reading.uss_bytes for reading in readings),
        )


def _group_oom_kills(group: ControlGroup | None) -> int | None:
    memory = group.read() if group is not None else None
    return memory.oom_kills if memory is not None else None


def _machine_oom_kills() -> int | None:
    """Kills for want of memory on the whole machine since it started."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)


def _difference(after: int | None, before: int | None) -> int | None:
    return None if after is None or before is None else after - before
