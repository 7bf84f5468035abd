"""Writes the recording of this process: samples every half second, marks as they happen."""

import atexit
import os
import platform
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import memfit
from memfit import failsafe
from memfit.agent import gc_pause
from memfit.agent.examiner import Examiner
from memfit.agent.observations import Observed
from memfit.agent.phase_marks import Phases
from memfit.agent.process_counts import read_software
from memfit.agent.suspicion import Suspicion
from memfit.backends import active_backend_name, load
from memfit.backends.observe import DeviceMemory
from memfit.failsafe import harmless
from memfit.measure.environment import read_settings
from memfit.measure.limits import find_limit
from memfit.measure.malloc import AllocatorMemory, read_allocator
from memfit.measure.process import read_children, read_process
from memfit.record.handover import sample_every_s
from memfit.record.jsonl import Writer
from memfit.record.run_folder import create_file
from memfit.record.samples import FORMAT, End, Header, Sample, StepProgress, Trouble
from memfit.user_code.frames import find_running_line, is_importing
from memfit.user_code.statements import place_at

_MOST_TROUBLES = 20
# The script has come back to lines that it had left this often: it is in a loop.
_LEAST_RETURNS = 3
# What reading malloc may cost of the training's time.
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


class Recorder:
    """Records this process from inside, until `close()` or its end.

    Args:
        run: Folder of the run.
        counters: What the hooks count.
        observed: What the hooks have seen, by line of the user's code.
        is_alone: Whether no supervisor watches; then child processes are read here too.

    Raises:
        OSError: If nothing can be written there.
    """

    def __init__(
        self, run: Path, counters: Counters, observed: Observed | None = None, *, is_alone: bool
    ) -> None:
        self.run = run
        self.counters = counters
        self._is_alone = is_alone
        self._writer = Writer(create_file(run, os.getpid()))
        self._lock = threading.RLock()
        self._is_closing = threading.Event()
        self._phases = Phases(self._writer.append)
        self._examiner = Examiner(self._writer.append, observed)
        self._suspicion = Suspicion()
        self._last_sample: Sample | None = None
        self._sampled_s = self._allocator_read_s = float("-inf")
        self._sample_cost_s = self._allocator_cost_s = 0.0
        self._probe_s = 0.0
        self._num_troubles = 0
        self._lines: set[str] = set()
        self._last_line: str | None = None
        self._num_returns = 0
        failsafe.on_trouble = self._record_trouble
        self._writer.append(_header())
        self.note_software()
        self._thread = threading.Thread(target=self._sample_forever, name="memfit", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    @property
    def is_closed(self) -> bool:
        """Whether this recorder has written its end."""
        return self._is_closing.is_set()

    @property
    def error(self) -> OSError | None:
        """Why the last write failed, if it did."""
        return self._writer.error

    def is_open(self, phase: str) -> bool:
        """Whether the training is inside `phase` now."""
        return self._phases.is_open(phase)

    def begin(self, phase: str, number: int | None = None) -> int:
        """Marks that `phase` begins and returns its number."""
        with self._probing():
            return self._phases.begin(phase, number)

    def end(self, phase: str) -> None:
        """Marks that `phase` ended."""
        with self._probing():
            self._phases.end(phase)

    def touch(self, phase: str) -> None:
        """Counts one short call; rows of them become one phase."""
        with self._lock:
            self._phases.touch(phase, is_active=False)

    def note_software(self) -> None:
        """Writes what is loaded by now."""
        self._writer.append(read_software())

    def sample_if_due(self) -> Sample | None:
        """Returns a new sample, or the last one if another so soon would cost too much."""
        due_s = self._sampled_s + self._sample_cost_s / _SHARE_OF_SHORT_EPOCHS
        return self.sample() if time.perf_counter() >= due_s else self._last_sample

    def _tick(self) -> None:
        with gc_pause.paused():
            self.sample(reads_children=self._is_alone)
            if self._has_begun:
                self.examine()
            with self._lock:
                self._phases.settle()

    @property
    def wants_collection(self) -> bool:
        """Whether a collection on trial waits for the script's own thread."""
        return self._examiner.wants_collection

    @harmless
    def collect(self) -> None:
        """Runs the collection that waits. Between two steps, in the script's own thread."""
        with self._probing():
            self._examiner.collect()

    def sample(self, *, reads_children: bool = False) -> Sample | None:
        """Takes and writes a sample, and returns it."""
        begun_s = self._sampled_s = time.perf_counter()
        with self._probing():
            memory = read_process(os.getpid())
            if memory is None:
                return None
            at, is_waiting = _running_line()
            sample = Sample(
                t_s=time.monotonic(),
                pid=os.getpid(),
                process=memory,
                children=read_children(os.getpid()) if reads_children else None,
                allocator=self._read_allocator(),
                devices=_read_devices(),
                progress=self.counters.freeze(),
                probe_s=round(self._probe_s, 6),
                at=at,
                is_importing=is_waiting,
            )
            self._writer.append(sample)
            self._note_line(sample.at)
            if self._has_begun:
                free_bytes = sample.allocator.free_bytes if sample.allocator else None
                self._suspicion.add(sample.t_s, memory.held_bytes, free_bytes)
            self._sample_cost_s = time.perf_counter() - begun_s
            self._last_sample = sample
            return sample

    @property
    def _has_begun(self) -> bool:
        """Whether steps were seen, or a loop that has none which memfit knows."""
        return self.counters.has_begun or self._num_returns >= _LEAST_RETURNS

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

    @harmless
    def examine(self, *, is_end: bool = False) -> None:
        """Looks for what grows and who holds it, if that is worth its price now."""
        with self._probing():
            is_suspicious = self._suspicion.is_raised
            if self._examiner.is_due(is_suspicious=is_suspicious, is_end=is_end):
                self._examiner.examine()
            self._examiner.go_further(
                is_suspicious=is_suspicious,
                risen_bytes=self._suspicion.risen_bytes,
                kept_bytes=self._suspicion.kept_bytes,
            )

    def close(self) -> None:
        """Writes the end of this process's recording."""
        if self._is_closing.is_set():
            return
        self._is_closing.set()
        atexit.unregister(self.close)
        harmless(self.sample)()
        self.examine(is_end=True)
        harmless(self._examiner.close)()
        with self._lock:
            self._phases.end_all()
            self._writer.append(End(time.monotonic(), round(self._probe_s, 6)))
            self._writer.close()

    def forget(self) -> None:
        """Lets go of everything without writing: this is a fork of the recorded process."""
        self._is_closing.set()
        self._lock = threading.RLock()  # another thread may have held it during the fork
        atexit.unregister(self.close)
        self._writer.close()

    def _sample_forever(self) -> None:
        tick = harmless(self._tick)
        begun_s = time.monotonic()
        while not self._is_closing.wait(sample_every_s(time.monotonic() - begun_s)):
            tick()

    def _record_trouble(self, where: str, error: Exception) -> None:
        self._num_troubles += 1
        if self._num_troubles <= _MOST_TROUBLES:
            message = f"{type(error).__name__}: {error}"
            self._writer.append(Trouble(time.monotonic(), where, message[:500]))

    @contextmanager
    def _probing(self) -> Iterator[None]:
        """Counts the time spent, and keeps the sampling thread out meanwhile."""
        with self._lock:
            begun_s = time.perf_counter()
            try:
                yield
            finally:
                self._probe_s += time.perf_counter() - begun_s


def _read_devices() -> tuple[DeviceMemory, ...]:
    name = active_backend_name()
    try:
        return load("observe", name).read_devices() if name is not None else ()
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


def _header() -> Header:
    return Header(
        format=FORMAT,
        role="agent",
        pid=os.getpid(),
        t_s=time.monotonic(),
        wall_time_s=time.time(),
        memfit=memfit.__version__,
        python=platform.python_version(),
        platform=platform.platform(),
        command=tuple(sys.argv),
        limit=find_limit(os.getpid()),
        settings=read_settings(),
    )
