"""What a budget leaves for a training step."""

import math
from dataclasses import dataclass

# Threads, buffers and fragments come and go while a training runs.
_SPARE_SHARE = 0.07
_LEAST_SPARE_BYTES = 8_000_000


@dataclass(frozen=True, slots=True)
class Headroom:
    """What is there before training and what may be used.

    Attributes:
        budget_bytes: What the user allows, for the whole process tree or on a device.
        idle_bytes: What is taken already.
        data_bytes: Copies of the data that training will make, and a single step does not.
        queued_bytes: Batches that will be ready before they are needed.
    """

    budget_bytes: int
    idle_bytes: int
    data_bytes: int = 0
    queued_bytes: int = 0

    @property
    def spare_bytes(self) -> int:
        """What is kept free, so that the budget holds."""
        spare = max(_LEAST_SPARE_BYTES, int(_SPARE_SHARE * self._left_bytes))
        return self.data_bytes + self.queued_bytes + spare

    @property
    def step_bytes(self) -> int:
        """The most that may be taken while a step is tried."""
        return self.budget_bytes - self.spare_bytes

    @property
    def hard_bytes(self) -> int:
        """The most that a whole batch, with what earlier trials left behind, may have taken."""
        return self.budget_bytes - self.data_bytes - self.queued_bytes

    @property
    def safe_bytes(self) -> int:
        """What a whole batch should take at most: another time the same takes somewhat more."""
        return (self.step_bytes + self.hard_bytes) // 2

    @property
    def _left_bytes(self) -> int:
        return max(self.budget_bytes - self.idle_bytes, 0)

    def smallest_budget(self, peak_bytes: int) -> int:
        """Returns the budget that a step with this peak would need."""
        needed = peak_bytes + self.data_bytes + self.queued_bytes
        with_share = (needed - _SPARE_SHARE * self.idle_bytes) / (1 - _SPARE_SHARE)
        return max(needed + _LEAST_SPARE_BYTES, math.ceil(with_share) + 1)
