"""Where a stream stands: which batches were used, and where the next pass begins."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Position:
    """A point between two batches.

    Attributes:
        epoch: The epoch, from 0.
        batch: How many of its batches were used.
    """

    epoch: int = 0
    batch: int = 0


@dataclass(slots=True)
class Pass:
    """One way through an epoch, or through the rest of it.

    Attributes:
        start: Where it began.
        length: Batches of an epoch.
        ahead: Batches that its user keeps ready.
        count: Tells how many batches were used, if what was given does not tell.
        given: How many batches were given.
        is_open: Whether more may be asked for.
    """

    start: Position
    length: int
    ahead: int = 0
    count: Callable[[], int] | None = None
    given: int = 0
    is_open: bool = True

    @property
    def used(self) -> int:
        """How many batches were used."""
        if self.count is not None:
            return self.count()
        is_all_given = self.start.batch + self.given >= self.length and not self.is_open
        return self.given if is_all_given else max(self.given - self.ahead, 0)

    @property
    def is_finished(self) -> bool:
        """Whether no batch of the epoch is left."""
        return self.start.batch + self.used >= self.length

    @property
    def was_look(self) -> bool:
        """Whether it ended after one batch at most, as `next(iter(data))` does."""
        return not self.is_open and self.used <= 1 and not self.is_finished


class Progress:
    """Follows the passes of a stream.

    A pass that is over is followed by the next epoch, also if it was left early; but a look at one
    batch does not count.
    """

    def __init__(self) -> None:
        self._next = Position()
        self._last: Pass | None = None

    @property
    def position(self) -> Position:
        """Where a restored stream would have to go on."""
        last = self._last
        if last is None:
            return self._next
        if last.is_finished:
            return Position(last.start.epoch + 1)
        if last.was_look:
            return last.start
        return Position(last.start.epoch, last.start.batch + last.used)

    @property
    def upcoming(self) -> Position:
        """Where the next pass begins."""
        last = self._last
        if last is None:
            return self._next
        if last.used <= 1 and not last.is_finished:
            return last.start
        return Position(last.start.epoch + 1)

    def begin(self, length: int, ahead: int, count: Callable[[], int] | None) -> Pass:
        """Begins the next pass."""
        self._last = Pass(self.upcoming, length, ahead, count)
        return self._last

    def move_to(self, position: Position) -> None:
        """Lets the next pass begin here."""
        self._next, self._last = position, None

    def take_back(self) -> None:
        """Forgets a pass that was left early: Keras looked at some batches to build a model."""
        last = self._last
        if last is not None and not last.is_open and not last.is_finished:
            self.move_to(last.start)
