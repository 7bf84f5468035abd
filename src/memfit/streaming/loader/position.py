"""Where a stream stands: which batches were used, where the next pass begins, and its state.

The state is a small dict that goes into any checkpoint.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from memfit.errors import DataChangedError, UsageError

# Another one as soon as the same seed gives another order.
_VERSION = 2


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


class PassTracker:
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


@dataclass(frozen=True, slots=True)
class State:
    """What it takes to go on with the very next batch.

    Attributes:
        epoch: The epoch, from 0.
        batch: How many of its batches were used.
        seed: What the order is made from; `None` for the order of the source.
        batch_size: Rows of a batch; `None` if `tokens` says how many.
        drop_remainder: Whether a last batch with fewer rows is left out.
        num_shards: How many parts the rows are dealt to. Which of them this is does not matter:
            all stand at the same batch.
        block_rows: Rows of a block; `None` for the groups of the source.
        window_rows: Rows of a window.
        num_rows: Rows of the data.
        fingerprint: What tells this data from other data.
        tokens: The most that rows times the longest sequence of a batch may be.
        version: Which version of memfit's order this is about.
    """

    epoch: int
    batch: int
    seed: int | None
    batch_size: int | None
    drop_remainder: bool
    num_shards: int
    block_rows: int | None
    window_rows: int
    num_rows: int
    fingerprint: str
    tokens: int | None = None
    version: int = _VERSION

    def to_dict(self) -> dict[str, Any]:
        """Returns it as JSON can keep it."""
        return dataclasses.asdict(self)

    def check_against(self, current: "State") -> None:
        """Raises if a stream in the state `current` cannot go on from here.

        Raises:
            DataChangedError: The data is other data.
            UsageError: The stream was made with other arguments.
        """
        if (self.num_rows, self.fingerprint) != (current.num_rows, current.fingerprint):
            raise DataChangedError(
                f"The state belongs to other data: {self.num_rows} rows with the fingerprint "
                f"{self.fingerprint[:8]}, and this stream has {current.num_rows} with "
                f"{current.fingerprint[:8]}. Some rows would be seen twice and others never: "
                "stream the data that the state was made with, or start again without the state."
            )
        for name in ("batch_size", "tokens", "drop_remainder", "num_shards"):
            before, now = getattr(self, name), getattr(current, name)
            if before != now:
                raise UsageError(
                    f"The state was made with {name}={before!r}; this stream has {name}={now!r}. "
                    "Make the stream with the same."
                )
        if (self.seed is None) != (current.seed is None):
            raise UsageError(
                f"The state was made with shuffle={self.seed is not None}; this stream has "
                f"shuffle={current.seed is not None}. Make the stream with the same."
            )


def read_state(value: Mapping[str, Any]) -> State:
    """Returns the state that `Stream.state()` gave.

    Raises:
        UsageError: It is not one, or of another version of memfit.
    """
    names = {one.name for one in dataclasses.fields(State)}
    is_state = isinstance(value, Mapping) and set(value) == names
    if not is_state or value["version"] != _VERSION:
        raise UsageError(
            f"Cannot restore from this. Received: {str(value)[:100]}. Expected what state() of a "
            f"stream returned, version {_VERSION}."
        )
    return State(**value)
