"""Samples of this process, at a bounded cost, and how far its training is."""

import os
import sys
import threading
import time
from dataclasses import dataclass

from memfit.backends import active_backend_name, load
from memfit.backends.devices import DeviceMemory
from memfit.measure.malloc import AllocatorMemory, read_allocator
from memfit.measure.process import read_children, read_process
from memfit.record.samples import Sample, StepProgress
from memfit.user_code.frames import find_running_line, is_importing
from memfit.user_code.statements import place_at

# The script has come back to lines that it had left this often: it is in a loop.
_LEAST_RETURNS = 3
# What reading malloc may cost, as a share of the training's time.
_SHARE_OF_TIME = 0.02
# Epochs of some milliseconds: a sample at the end of each would cost more than the epoch.
_SHARE_OF_SHORT_EPOCHS = 0.2


@dataclass(slots=True)
class Counters:
    """How far the training is. Plain attributes, as some are set at every step."""

    fit: int | None = None
    epoch: int | None = None
    epochs: int | None = None
    step: int | None = None
    steps: int | None = None
    steps_before: int = 0
    updates: int = 0
    calls: int = 0

    @property
    def has_begun(self) -> bool:
        """Whether a step was seen."""
        return bool(self.steps_before or self.step or self.updates or self.calls)

    def end_epoch(self) -> None:
        """Counts the steps of the epoch that is over."""
        self.steps_before += self.step or 0
        self.step = None

    def freeze(self) -> StepProgress:
        """Returns the counters as they are now."""
        return StepProgress(
            fit=self.fit,
            epoch=self.epoch,
            epochs=self.epochs,
            step=self.step,
            steps=self.steps,
            total_steps=self.steps_before + (self.step or 0),
            updates=self.updates,
            calls=self.calls,
        )


class Sampler:
    """Takes samples of this process.

    Args:
        counters: What the hooks count.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self.last: Sample | None = None
        self._begun_s = self._allocator_read_s = float("-inf")
        self._cost_s = self._allocator_cost_s = 0.0
        self._lines: set[str] = set()
        self._last_line: str | None = None
        self._num_returns = 0

    @property
    def is_due(self) -> bool:
        """Whether enough time has passed since the last sample to pay for another."""
        return time.perf_counter() >= self._begun_s + self._cost_s / _SHARE_OF_SHORT_EPOCHS

    @property
    def has_begun(self) -> bool:
        """Whether steps were counted, or the script runs a loop whose steps memfit cannot see."""
        return self._counters.has_begun or self._num_returns >= _LEAST_RETURNS

    def take(self, probe_s: float, *, reads_children: bool = False) -> Sample | None:
        """Returns a new sample; `None` if this process cannot be read.

        Args:
            probe_s: What memfit has cost in this process so far.
            reads_children: Whether to read child processes too.
        """
        self._begun_s = time.perf_counter()
        memory = read_process(os.getpid())
        if memory is None:
            return None
        line, is_waiting = _running_line()
        self.last = Sample(
            t_s=time.monotonic(),
            pid=os.getpid(),
            process=memory,
            children=read_children(os.getpid()) if reads_children else None,
            allocator=self._read_allocator(),
            devices=_read_devices(),
            progress=self._counters.freeze(),
            probe_s=round(probe_s, 6),
            at=line,
            is_importing=is_waiting,
        )
        self._note_line(line)
        self._cost_s = time.perf_counter() - self._begun_s
        return self.last

    def _note_line(self, line: str | None) -> None:
        if line is not None and line != self._last_line:
            self._num_returns += line in self._lines
            self._lines.add(line)
            self._last_line = line

    def _read_allocator(self) -> AllocatorMemory | None:
        """Malloc walks all its free blocks to answer: with millions of them, not every time."""
        begun_s = time.perf_counter()
        if self._allocator_cost_s > _SHARE_OF_TIME * (begun_s - self._allocator_read_s):
            return None
        memory = read_allocator()
        self._allocator_read_s = begun_s
        self._allocator_cost_s = time.perf_counter() - begun_s
        return memory


def _read_devices() -> tuple[DeviceMemory, ...]:
    name = active_backend_name()
    try:
        return load("devices", name).read_devices() if name is not None else ()
    except AttributeError:  # the script is importing it at this moment
        return ()


def _running_line() -> tuple[str | None, bool]:
    """The line of the user's code that the main thread is in, and whether it is an import."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    line, is_waiting = find_running_line(frame), is_importing(frame)
    del frame  # what it holds would live as long as this
    if line is None:
        return None, is_waiting
    place = place_at(*line)
    return f"{place.file}:{place.line}", is_waiting
