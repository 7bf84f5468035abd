"""Looks for what grows in the training process, and who holds it, at a bounded cost.

Cheap checks (counts, what the user's names hold) run all the time. Only while memory rises and
these do not explain it does the examiner go further: it tries what could give memory back, takes
a census of all objects, and at last traces allocations for a second.
"""

import bisect
import threading
import time
from collections.abc import Callable

from memfit.agent import gc_pause
from memfit.agent.allocation_trace import AllocationTrace
from memfit.agent.growing_names import GrowingNames
from memfit.agent.observations import Observations
from memfit.agent.pipeline_buffers import read_buffers
from memfit.agent.process_counts import count_things
from memfit.agent.remedy_trials import try_collect, try_trim
from memfit.heap.census import take_census
from memfit.record.evidence import Evidence, Look
from memfit.record.samples import Sample

# What checks may cost, as a share of the time since the last one.
_SHARE_OF_TIME = 0.003
_SHARE_WHILE_RISING = 0.05
# And what going further may cost, of all time: with the checks it comes to 5%.
_SHARE_OF_STEPS = 0.04
# After this many checks, what grows is found or cannot be found this way.
_EARLY_LOOKS = 10
_MOST_S = 0.25
# A short run would end before its second check is due.
_FREE_LOOKS = 6
# Memory that rises at first is warm-up: the steps beyond checks wait for this long.
_PATIENCE_S = 4.0
_EXPLAINED_SHARE = 0.5
# A leak may begin hours after warm-up has used up all steps.
_RENEWED_AFTER_S = 600.0
# Allocations are traced for this long before the first snapshot, and again after it.
_TRACE_S = 0.4
# A rise of memory that is worth a closer check.
_LEAST_RISE_BYTES = 4_000_000
_MOST_KEPT = 512


# What to do, and an estimate of its cost in seconds.
Step = tuple[Callable[[], None], float]


class MemoryRise:
    """Whether memory is rising now: compared with half-way back to the first reading.

    Memory rises while a training warms up, and then no more; with a leak it keeps rising.
    """

    def __init__(self) -> None:
        self._times_s: list[float] = []
        self._held_bytes: list[int] = []
        self._first_free_bytes: int | None = None
        self._free_bytes = 0

    def add(self, t_s: float, held_bytes: int, free_bytes: int | None = None) -> None:
        """Adds a reading; `free_bytes` is what malloc keeps for later, where it was read."""
        if free_bytes is not None:
            if self._first_free_bytes is None:
                self._first_free_bytes = free_bytes
            self._free_bytes = free_bytes
        self._times_s.append(t_s)
        self._held_bytes.append(held_bytes)
        if len(self._times_s) > _MOST_KEPT:
            del self._times_s[1:-1:2], self._held_bytes[1:-1:2]

    @property
    def is_rising(self) -> bool:
        """Whether memory has risen since half-way."""
        if not self._times_s:
            return False
        half_way_s = (self._times_s[0] + self._times_s[-1]) / 2
        then = max(bisect.bisect_right(self._times_s, half_way_s) - 1, 0)
        return self._held_bytes[-1] - self._held_bytes[then] >= _LEAST_RISE_BYTES

    @property
    def kept_bytes(self) -> int:
        """By how much that has risen which malloc keeps for later."""
        return self._free_bytes - (self._first_free_bytes or 0)

    @property
    def risen_bytes(self) -> int:
        """By how much memory has risen since the first reading."""
        return self._held_bytes[-1] - self._held_bytes[0] if self._held_bytes else 0


class Examiner:
    """Decides when to check and how closely, and writes what it finds.

    Args:
        write: Takes what was found.
        observed: What the hooks have counted.
        clock: The monotonic clock.
    """

    def __init__(
        self,
        write: Callable[[Evidence], None],
        observed: Observations | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._observed = observed or Observations()
        self._clock = clock
        self._rise = MemoryRise()
        self._names = GrowingNames()
        self._num_looks = 0
        self._last_t_s = float("-inf")
        self._last_cost_s = 0.0
        self._explained_bytes = 0
        self._rising_since_t_s: float | None = None
        # What going further has cost so far, and the next steps with an estimate of their cost.
        self._spent_s = 0.0
        self._next_steps = self._all_steps()
        self._steps_renewed_t_s = clock()
        self._has_trimmed = False
        self.wants_collection = False
        self._trace: AllocationTrace | None = None
        self._begun_t_s = clock()

    def add(self, sample: Sample) -> None:
        """Adds a sample of this process, which shows whether memory rises."""
        free_bytes = sample.allocator.free_bytes if sample.allocator else None
        self._rise.add(sample.t_s, sample.process.held_bytes, free_bytes)

    def examine_if_due(self, *, is_end: bool = False) -> None:
        """Checks what grows and goes further where that is worth its cost now."""
        is_rising = self._rise.is_rising
        if self.is_due(is_rising=is_rising, is_end=is_end):
            self.examine()
        self._go_further(is_rising=is_rising)

    def is_due(self, *, is_rising: bool, is_end: bool = False) -> bool:
        """Whether another check is worth its cost now; at the end of a `fit` it is worth more."""
        if is_rising and self._num_looks < _FREE_LOOKS:
            return True
        is_worth_more = is_end or self._num_looks < _EARLY_LOOKS
        share = _SHARE_WHILE_RISING if is_rising and is_worth_more else _SHARE_OF_TIME
        return self._last_cost_s <= share * (self._clock() - self._last_t_s)

    def examine(self) -> None:
        """Checks counts and names, and writes what has grown since the first check."""
        begun_s = time.perf_counter()
        now_t_s = self._clock()
        counted = count_things()
        grown = self._names.find_grown(now_t_s, _MOST_S)
        buffers = read_buffers(now_t_s, self._observed)
        for one in (*grown, *self._observed.find_new(now_t_s), *buffers):
            self._write(one)
        self._explained_bytes = sum(one.growth_bytes for one in grown)
        self._explained_bytes += sum(one.held_bytes for one in buffers)
        self._num_looks += 1
        cost_s = time.perf_counter() - begun_s
        self._write(
            Look(now_t_s, "counts", round(cost_s, 6), dict(counted.numbers), dict(counted.sizes))
        )
        self._last_t_s, self._last_cost_s = now_t_s, cost_s

    def _go_further(self, *, is_rising: bool) -> None:
        """Takes the next step towards an explanation, if there is none and it can be paid for."""
        if self._trace is not None:
            self._continue_trace(self._trace)
            return
        if not self._is_lasting(is_rising=is_rising):
            return
        risen_bytes = self._rise.risen_bytes
        if self._explained_bytes >= _EXPLAINED_SHARE * risen_bytes:
            return
        if not self._has_trimmed and self._rise.kept_bytes >= _EXPLAINED_SHARE * risen_bytes:
            self._has_trimmed = True  # it changes what is measured: only where it is the question
            self._trim()
        elif self._next_steps:
            self._take_next_step()

    def _is_lasting(self, *, is_rising: bool) -> bool:
        """Whether memory has been rising for some time: at first that is warm-up."""
        now_t_s = self._clock()
        if not is_rising:
            self._rising_since_t_s = None
            if now_t_s - self._steps_renewed_t_s >= _RENEWED_AFTER_S:
                self._steps_renewed_t_s = now_t_s  # what grows next is another matter
                self._next_steps = self._all_steps()
            return False
        if self._rising_since_t_s is None:
            self._rising_since_t_s = now_t_s
        return now_t_s - self._rising_since_t_s >= _PATIENCE_S

    def _take_next_step(self) -> None:
        if not gc_pause.is_enabled():  # then garbage is what to look for first
            self._next_steps.sort(key=lambda step: step[0] != self._collect)
        step = self._next_steps[0]
        is_main_thread = threading.current_thread() is threading.main_thread()
        if step[0] == self._collect and not is_main_thread:
            self.wants_collection = True  # in the script's own thread, between two steps
        else:
            self._take(step)

    def collect(self) -> None:
        """Takes the step that was waiting for the script's own thread."""
        self.wants_collection = False
        waiting = [step for step in self._next_steps if step[0] == self._collect]
        if waiting:
            self._take(waiting[0])

    def _take(self, step: Step) -> None:
        """Takes a step if it can be paid for."""
        run, cost_s = step
        if self._spent_s + cost_s > _SHARE_OF_STEPS * (self._clock() - self._begun_t_s):
            return
        self._next_steps.remove(step)
        begun_s = time.perf_counter()
        run()
        self._spent_s += time.perf_counter() - begun_s

    def _all_steps(self) -> list[Step]:
        return [
            (self._census, 0.2),
            (self._collect, 0.3),
            (self._start_trace, 0.8),
            (self._census, 0.2),
            (self._census, 0.2),
            (self._start_trace, 0.8),
            (self._census, 0.2),
        ]

    def close(self) -> None:
        """Ends a trace that still runs."""
        if self._trace is not None:
            self._end_trace(self._trace)

    def _trim(self) -> None:
        trial = try_trim()
        if trial is not None:
            self._write(trial)

    def _collect(self) -> None:
        self._write(try_collect())

    def _census(self) -> None:
        begun_s = time.perf_counter()
        now_t_s = self._clock()
        census = take_census()
        for one in self._names.find_grown(now_t_s, _MOST_S, census.roots):
            self._write(one)
        cost_s = time.perf_counter() - begun_s
        self._write(Look(now_t_s, "census", round(cost_s, 6), census.numbers, census.sizes))

    def _start_trace(self) -> None:
        if AllocationTrace.is_possible():
            self._trace = AllocationTrace()

    def _continue_trace(self, trace: AllocationTrace) -> None:
        if trace.age_s >= 2 * _TRACE_S:
            self._end_trace(trace)
        elif trace.age_s >= _TRACE_S:
            begun_s = time.perf_counter()
            trace.take_first_snapshot()
            self._spent_s += time.perf_counter() - begun_s

    def _end_trace(self, trace: AllocationTrace) -> None:
        self._trace = None
        begun_s = time.perf_counter()
        age_s = trace.age_s
        for one in trace.close():
            self._write(one)
        # While it ran, Python was several times slower; count all of it.
        cost_s = time.perf_counter() - begun_s + age_s
        self._spent_s += cost_s
        self._write(Look(self._clock(), "window", round(cost_s, 6)))
