"""Numbers that the user's code keeps in plain attributes, and counts up once a call."""

from dataclasses import dataclass
from typing import Any

from memfit.fitting.state.reachable import walk
from memfit.slots import attributes_of


@dataclass(frozen=True, slots=True)
class Counter:
    """An attribute that holds a number, or something with a length.

    Attributes:
        owner: Whose attribute it is.
        name: Its name.
    """

    owner: Any
    name: str

    def read(self) -> float:
        """Returns the number, or the length; nothing counts as 0."""
        value = attributes_of(self.owner).get(self.name)
        return float(len(value) if isinstance(value, list | dict) else value or 0)


def find_counters(model: Any) -> list[Counter]:
    """Returns the numbers and lengths in public attributes of objects of the user's classes."""
    return [
        Counter(thing.value, name)
        for thing in walk(model)
        if thing.kind.is_opened and not type(thing.value).__module__.startswith("keras.")
        for name, value in attributes_of(thing.value).items()
        if not name.startswith("_") and type(value) in (int, float, list, dict)
    ]


def counts_calls(whole: float, parts: float, number: int) -> bool:
    """Returns whether a number moves once a micro-batch where a batch moves it once.

    A size that a layer remembers of its last call does not.

    Args:
        whole: How far a step at once moves it.
        parts: How far a step in micro-batches moves it.
        number: How many micro-batches that were.
    """
    return whole != 0 and parts == number * whole
