"""Which phase the training is in, written as marks; calls in quick succession are one phase."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from memfit.record.samples import Mark

# These may be called thousands of times a minute; the others take long by nature.
JOINED_PHASES = frozenset({"evaluate", "predict", "train_on_batch"})
JOIN_WITHIN_S = 1.0


@dataclass
class _Joined:
    """A row of calls of one kind, not yet known to be over."""

    phase: str
    number: int
    calls: int
    last_t_s: float
    is_active: bool = True


class Phases:
    """Keeps the open phases and writes a mark when one begins or ends.

    Args:
        write: Takes each mark.
        clock: The monotonic clock.
    """

    def __init__(
        self, write: Callable[[Mark], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write = write
        self._clock = clock
        self._open: list[tuple[str, int]] = []
        self._joined: _Joined | None = None
        self._numbers: dict[str, int] = {}

    def is_open(self, phase: str) -> bool:
        """Whether the training is inside `phase` now."""
        return any(name == phase for name, _ in self._open)

    def begin(self, phase: str, number: int | None = None) -> int:
        """Opens `phase` and returns its number."""
        if phase in JOINED_PHASES:
            return self.touch(phase)
        self._finish_joined()
        number = number or self._next_number(phase)
        self._open.append((phase, number))
        self._write(Mark(self._clock(), "begin", phase, number))
        return number

    def touch(self, phase: str, *, is_active: bool = True) -> int:
        """Counts one call of a phase that is called in rows; opens the row if need be."""
        now_s = self._clock()
        joined = self._joined
        if (
            joined is not None
            and joined.phase == phase
            and (joined.is_active or now_s - joined.last_t_s < JOIN_WITHIN_S)
        ):
            joined.calls += 1
            joined.last_t_s = now_s
            joined.is_active = is_active
            return joined.number
        self._finish_joined()
        number = self._next_number(phase)
        self._joined = _Joined(phase, number, 1, now_s, is_active)
        self._write(Mark(now_s, "begin", phase, number))
        return number

    def end(self, phase: str) -> None:
        """Closes `phase` and whatever was left open inside it."""
        if phase in JOINED_PHASES:
            if self._joined is not None and self._joined.phase == phase:
                self._joined.is_active = False
                self._joined.last_t_s = self._clock()
            return
        self._finish_joined()
        if self.is_open(phase):
            while self._close_innermost() != phase:
                pass

    def settle(self) -> None:
        """Closes a row of calls that seems to be over; called now and then."""
        joined = self._joined
        if (
            joined is not None
            and not joined.is_active
            and self._clock() - joined.last_t_s >= JOIN_WITHIN_S
        ):
            self._finish_joined()

    def end_all(self) -> None:
        """Closes everything, the innermost first."""
        self._finish_joined()
        while self._open:
            self._close_innermost()

    def _close_innermost(self) -> str:
        phase, number = self._open.pop()
        self._write(Mark(self._clock(), "end", phase, number))
        return phase

    def _finish_joined(self) -> None:
        joined, self._joined = self._joined, None
        if joined is not None:
            end_t_s = self._clock() if joined.is_active else joined.last_t_s
            self._write(Mark(end_t_s, "end", joined.phase, joined.number, joined.calls))

    def _next_number(self, phase: str) -> int:
        self._numbers[phase] = self._numbers.get(phase, 0) + 1
        return self._numbers[phase]
