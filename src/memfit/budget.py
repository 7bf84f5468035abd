"""The memory that a user allows a training to take: parsed once, then passed on as it is."""

from dataclasses import dataclass
from typing import Self

from memfit.arguments import check_size_text
from memfit.errors import UsageError
from memfit.units import format_size


@dataclass(frozen=True, slots=True)
class Budget:
    """How much memory a training may take, and where.

    Attributes:
        size_bytes: The most that may be taken.
        place: `"host"` for the memory of this process and those it starts; `"device"` for what
            tensors take of each accelerator.
    """

    size_bytes: int
    place: str = "host"

    @classmethod
    def parse(cls, budget: object, device_budget: object) -> Self:
        """Returns the budget of the arguments `budget` and `device_budget`, one of which is given.

        Raises:
            UsageError: If none or both are given, or it is not text.
            InvalidSizeError: If it is not a size.

        Example:
        >>> Budget.parse("4GB", None)
        Budget(size_bytes=4000000000, place='host')
        """
        if (budget is None) == (device_budget is None):
            raise UsageError(
                "Give one of budget (memory of this process and of those it starts) and "
                f"device_budget (memory of the accelerator). Received: budget={budget!r}, "
                f"device_budget={device_budget!r}."
            )
        name, size, place = (
            ("budget", budget, "host")
            if device_budget is None
            else ("device_budget", device_budget, "device")
        )
        return cls(check_size_text(name, size), place)

    def __str__(self) -> str:
        return format_size(self.size_bytes)
