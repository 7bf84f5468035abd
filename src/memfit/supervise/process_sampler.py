"""Samples of the script's process and its children, read from outside."""

import time
from collections.abc import Sequence

from memfit.measure.control_group import ControlGroup, find_control_group
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
from memfit.record.samples import Sample

# PSS walks every page of a process and holds up its page faults meanwhile.
PROPORTIONAL_EVERY_S = 5.0
CHILDREN_EVERY_S = 1.5


class ProcessSampler:
    """Takes samples of a process from outside.

    Args:
        reads_proportional: Whether PSS and USS are read too, every five seconds.
    """

    def __init__(self, *, reads_proportional: bool = False) -> None:
        self._pid = 0
        self._group: ControlGroup | None = None
        self._reads_proportional = reads_proportional
        self._proportional_t_s = self._children_read_t_s = float("-inf")
        self._nvidia = open_nvidia()

    def attach(self, pid: int) -> None:
        """Names the process to sample."""
        self._pid = pid
        self._group = find_control_group(pid)

    def take(self) -> Sample | None:
        """Returns a sample of the process and its children; `None` if it has ended."""
        pid = self._pid
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
            control_group=self._group.read() if self._group else None,
            available_bytes=read_available(),
            pressure=read_pressure(),
            proportional=self._read_proportional(pids),
            children_own_bytes=self._read_children_own(children),
        )

    def count_group_oom_kills(self) -> int | None:
        """Returns how many processes of its control group the kernel has killed for memory."""
        memory = self._group.read() if self._group is not None else None
        return memory.oom_kills if memory is not None else None

    def _read_children_own(self, children: Sequence[ChildMemory]) -> int | None:
        """The unshared memory of workers: the kernel walks over their pages to read it."""
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
