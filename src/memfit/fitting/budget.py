"""What a budget leaves for a step, and the plan that was made within it."""

import math
from dataclasses import dataclass

from memfit.units import format_size

# Threads, buffers and fragments come and go while a training runs.
_SPARE_SHARE = 0.07
_LEAST_SPARE_BYTES = 8_000_000


@dataclass(frozen=True, slots=True)
class Room:
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
        spare = max(_LEAST_SPARE_BYTES, int(_SPARE_SHARE * self._headroom_bytes))
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
    def _headroom_bytes(self) -> int:
        return max(self.budget_bytes - self.idle_bytes, 0)

    def smallest_budget(self, peak_bytes: int) -> int:
        """Returns the budget that a step with this peak would need."""
        needed = peak_bytes + self.data_bytes + self.queued_bytes
        with_share = (needed - _SPARE_SHARE * self.idle_bytes) / (1 - _SPARE_SHARE)
        return max(needed + _LEAST_SPARE_BYTES, math.ceil(with_share) + 1)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done to keep a budget.

    Attributes:
        batch_size: Samples in a batch.
        size: Samples in a piece; `None` if batches stay whole.
        peak_bytes: Measured while a batch ran.
        budget_bytes: The budget.
        step_s: Measured for one batch.
        place: The device that the budget is about; nothing for the memory of processes.
        faster: A smaller size that was faster in trials, and how many times.
        whole_bytes: About what whole batches would need, where they do not fit.
        kept_bytes: What the process keeps of a trial that passed the budget, if one did.
        levers: What else was done, in words.
        refused: What was not done and why, in words.
    """

    batch_size: int
    size: int | None
    peak_bytes: int
    budget_bytes: int
    step_s: float
    place: str = ""
    faster: tuple[int, float] | None = None
    whole_bytes: int | None = None
    kept_bytes: int | None = None
    levers: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.size is None:
            lines = [f"batches of {self.batch_size} stay whole"]
        else:
            number = -(-self.batch_size // self.size)
            rest = self.batch_size % self.size
            last = f", the last of {rest}" if rest else ""
            lines = [f"batches of {self.batch_size} run in {number} pieces of {self.size}{last}"]
        lines += self.levers
        peak = f"peak {format_size(self.peak_bytes)} of {format_size(self.budget_bytes)}"
        place = f" on {self.place}" if self.place else ""
        lines.append(f"measured: {peak}{place}, {self.step_s:.3g} s a batch")
        if self.kept_bytes is not None:
            lines.append(
                f"a larger trial took more than the budget, and the framework keeps "
                f"{format_size(self.kept_bytes)}; another start tries this size first"
            )
        if self.faster is not None:
            size, ratio = self.faster
            lines.append(f"pieces of {size} were {ratio:.1f}x faster in trials (see memfit.split)")
        if self.whole_bytes is not None:
            lines.append(f"whole batches would need about {format_size(self.whole_bytes)}")
        if self.refused:
            lines.append(f"not done: {', '.join(self.refused)}")
        return "\n".join(lines)
