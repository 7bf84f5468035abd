"""Writes the recording of this process: samples every half second, marks as they happen."""

import atexit
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memfit import failsafe
from memfit.agent import gc_pause
from memfit.agent.examiner import Examiner
from memfit.agent.observations import Observations
from memfit.agent.phase_marks import Phases
from memfit.agent.process_counts import read_software
from memfit.agent.sampler import Counters, Sampler
from memfit.failsafe import harmless
from memfit.record.handover import sample_every_s
from memfit.record.header import make_header
from memfit.record.jsonl import Writer
from memfit.record.run_folder import create_file
from memfit.record.samples import End, Entry, Sample, Trouble

_MOST_TROUBLES = 20


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
        self, run: Path, counters: Counters, observed: Observations | None = None, *, is_alone: bool
    ) -> None:
        self.run = run
        self.counters = counters
        self._is_alone = is_alone
        self._writer = Writer(create_file(run, os.getpid()))
        self._lock = threading.RLock()
        self._is_closing = threading.Event()
        self._phases = Phases(self._writer.append)
        self._examiner = Examiner(self._writer.append, observed)
        self._sampler = Sampler(counters)
        self._probe_s = 0.0
        self._num_troubles = 0
        failsafe.on_trouble = self._record_trouble
        self._writer.append(make_header("agent", sys.argv))
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

    def write(self, entry: Entry) -> None:
        """Writes what was found out elsewhere."""
        self._writer.append(entry)

    def sample_if_due(self) -> Sample | None:
        """Returns a new sample, or the last one if another so soon would cost too much."""
        return self.sample() if self._sampler.is_due else self._sampler.last

    def _tick(self) -> None:
        with gc_pause.paused():
            self.sample(reads_children=self._is_alone)
            if self._sampler.has_begun:
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
        with self._probing():
            sample = self._sampler.take(self._probe_s, reads_children=reads_children)
            if sample is None:
                return None
            self._writer.append(sample)
            if self._sampler.has_begun:
                self._examiner.add(sample)
            return sample

    @harmless
    def examine(self, *, is_end: bool = False) -> None:
        """Looks for what grows and who holds it, if that is worth its cost now."""
        with self._probing():
            self._examiner.examine_if_due(is_end=is_end)

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
