"""What a training changes beside Keras's variables: one module a framework.

Variables that a framework makes itself, and the numbers that its own random operations draw.
"""

from typing import Any, Protocol


class NativeState(Protocol):
    """What memfit reads and puts back. Modules of this package have this shape."""

    def is_module(self, value: Any) -> bool:
        """Returns whether it is an object of the framework that keeps variables as attributes."""

    def unwrap(self, value: Any) -> Any:
        """Returns what the framework has put into the place of an attribute's value, unwrapped."""

    def find_variable(self, value: Any) -> Any | None:
        """Returns the variable that `value` is, or that it keeps its random state in."""

    def read(self, variable: Any) -> Any:
        """Returns the value of a variable as a NumPy array, of whatever dtype."""

    def write(self, variable: Any, array: Any) -> None:
        """Gives a variable the value that `read` returned."""

    def get_random_state(self) -> Any:
        """Returns where random operations without a generator of their own are."""

    def set_random_state(self, state: Any) -> None:
        """Has them go on from there."""
