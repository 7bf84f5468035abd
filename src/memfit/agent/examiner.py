"""Looks for what grows in the training process, and who holds it, at a bounded price.

Cheap looks (counts, what the user's names hold) run all the time. Only while memory rises and
these do not explain it does the examiner go further: it tries what could give memory back, takes
a census of all objects, and at last traces allocations for a second.
"""

import threading
import time
from collections.abc import Callable

from memfit.agent import gc_pause
from memfit.agent.allocation_window import Window
from memfit.agent.growing_names import Names
from memfit.agent.observations import Observed
from memfit.agent.pipeline_buffers import read_buffers
from memfit.agent.process_counts import count_things
from memfit.agent.remedy_trials import try_collect, try_trim
from memfit.heap.census import take_census
from memfit.record.evidence import Evidence, Look

# What looks may cost, as a share of the time since the last one.
_SHARE_OF_TIME = 0.003
_SHARE_UNDER_SUSPICION = 0.05
# And what going further may cost, of all time: with the looks it comes to 5%.
_SHARE_OF_STEPS = 0.04
# After these a suspicion has been examined: what grows is known, or cannot be seen this way.
_EARLY_LOOKS = 10
_MOST_S = 0.25
# A short run would end before its second look is due.
_FREE_LOOKS = 6
# Memory that rises at first is warm-up: going further than looks waits for this long.
_PATIENCE_S = 4.0
_EXPLAINED_SHARE = 0.5
# A leak may begin hours after warm-up has used up all steps.
_RENEWED_AFTER_S = 600.0
# Allocations are traced for this long before the first snapshot, and again after it.
_WINDOW_S = 0.4


# What to do, and a guess at its price in seconds.
Step = tuple[Callable[[], None], float]


class Examiner:
    """Decides when to look how closely, and writes what it finds.

    Args:
        write: Takes what was found.
        observed: What the hooks have counted.
        clock: The monotonic clock.
    """

    def __init__(
        self,
        write: Callable[[Evidence], None],
        observed: Observed | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._observed = observed or Observed()
        self._clock = clock
        self._names = Names()
        self._num_looks = 0
        self._last_t_s = float("-inf")
        self._last_cost_s = 0.0
        self._explained_bytes = 0
        self._suspicious_since_t_s: float | None = None
        # What going further has cost so far, and the next steps with a guess at their price.
        self._spent_s = 0.0
        self._next_steps = self._all_steps()
        self._steps_renewed_t_s = clock()
        self._has_trimmed = False
        self.wants_collection = False
        self._window: Window | None = None
        self._begun_t_s = clock()

    def is_due(self, *, is_suspicious: bool, is_end: bool = False) -> bool:
        """Whether another look is worth its price now; at the end of a `fit` it is worth more."""
        if is_suspicious and self._num_looks < _FREE_LOOKS:
            return True
        is_worth_more = is_end or self._num_looks < _EARLY_LOOKS
        share = _SHARE_UNDER_SUSPICION if is_suspicious and is_worth_more else _SHARE_OF_TIME
        return self._last_cost_s <= share * (self._clock() - self._last_t_s)

    def examine(self) -> None:
        """Looks at counts and names, and writes what has grown since the first look."""
        begun_s = time.perf_counter()
        now_t_s = self._clock()
        counted = count_things()
        grown = self._names.look(now_t_s, _MOST_S)
        buffers = read_buffers(now_t_s, self._observed)
        for one in (*grown, *self._observed.look(now_t_s), *buffers):
            self._write(one)
        self._explained_bytes = sum(one.growth_bytes for one in grown)
        self._explained_bytes += sum(one.held_bytes for one in buffers)
        self._num_looks += 1
        cost_s = time.perf_counter() - begun_s
        self._write(
            Look(now_t_s, "counts", round(cost_s, 6), dict(counted.numbers), dict(counted.sizes))
        )
        self._last_t_s, self._last_cost_s = now_t_s, cost_s

    def go_further(self, *, is_suspicious: bool, risen_bytes: int, kept_bytes: int = 0) -> None:
        """Takes the next step towards an explanation, if there is none and it can be paid for.

        Args:
            is_suspicious: Whether memory rises now.
            risen_bytes: By how much it has risen since the training began.
            kept_bytes: By how much that has which malloc keeps for later.
        """
        if self._window is not None:
            self._go_on_with_window(self._window)
            return
        if not self._is_lasting(is_suspicious=is_suspicious):
            return
        if self._explained_bytes >= _EXPLAINED_SHARE * risen_bytes:
            return
        if not self._has_trimmed and kept_bytes >= _EXPLAINED_SHARE * risen_bytes:
            self._has_trimmed = True  # it changes what is measured: only where it is the question
            self._trim()
        elif self._next_steps:
            self._take_next_step()

    def _is_lasting(self, *, is_suspicious: bool) -> bool:
        """Whether memory has been rising for some time: at first that is warm-up."""
        now_t_s = self._clock()
        if not is_suspicious:
            self._suspicious_since_t_s = None
            if now_t_s - self._steps_renewed_t_s >= _RENEWED_AFTER_S:
                self._steps_renewed_t_s = now_t_s  # what grows next is another matter
                self._next_steps = self._all_steps()
            return False
        if self._suspicious_since_t_s is None:
            self._suspicious_since_t_s = now_t_s
        return now_t_s - self._suspicious_since_t_s >= _PATIENCE_S

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
            (self._open_window, 0.8),
            (self._census, 0.2),
            (self._census, 0.2),
            (self._open_window, 0.8),
            (self._census, 0.2),
        ]

    def close(self) -> None:
        """Ends a window that is open."""
        if self._window is not None:
            self._close_window(self._window)

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
        for one in self._names.look(now_t_s, _MOST_S, census.roots):
            self._write(one)
        cost_s = time.perf_counter() - begun_s
        self._write(Look(now_t_s, "census", round(cost_s, 6), census.numbers, census.sizes))

    def _open_window(self) -> None:
        if Window.is_possible():
            self._window = Window()

    def _go_on_with_window(self, window: Window) -> None:
        if window.age_s >= 2 * _WINDOW_S:
            self._close_window(window)
        elif window.age_s >= _WINDOW_S:
            begun_s = time.perf_counter()
            window.look()
            self._spent_s += time.perf_counter() - begun_s

    def _close_window(self, window: Window) -> None:
        self._window = None
        begun_s = time.perf_counter()
        age_s = window.age_s
        for one in window.close():
            self._write(one)
        # While it was open, Python ran several times slower; count all of it.
        cost_s = time.perf_counter() - begun_s + age_s
        self._spent_s += cost_s
        self._write(Look(self._clock(), "window", round(cost_s, 6)))
