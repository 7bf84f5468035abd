"""What a framework keeps for itself: registries, caches, compiled code.

Inside a training this topic never imports its framework: it is used only once the script has
done so, and nothing it does may initialise a device that the script has not initialised.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Counted:
    """How many things of each kind there are, and their bytes where known."""

    numbers: Mapping[str, int] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


class Registries(Protocol):
    """What memfit counts and releases. Modules of this package have this shape."""

    def count(self) -> Counted:
        """Returns what the framework keeps in its own registries."""

    def registered(self) -> frozenset[str]:
        """Returns the names of what the framework keeps for models, also when they are gone."""

    def release(self, names: frozenset[str]) -> None:
        """Lets go of `names` of these, and of what was compiled; the models must be gone."""

    def is_compiler_loaded(self) -> bool:
        """Returns whether Keras can clear its session without loading a compiler first."""
