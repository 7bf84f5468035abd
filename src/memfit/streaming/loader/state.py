"""Where a stream stands, as a small dict that goes into any checkpoint."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memfit.errors import DataChangedError, UsageError

# Another one as soon as the same seed gives another order.
_VERSION = 2


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
                "stream the data that the state was made with, or begin anew without the state."
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
