"""How a search for a way to keep a budget ends: in a plan, or in a refusal."""

from dataclasses import dataclass, field

from memfit.fitting.attempt import Levers
from memfit.units import format_size


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done to keep a budget.

    Attributes:
        batch_size: Samples in a batch.
        size: Samples in a micro-batch; `None` if batches stay whole.
        peak_bytes: Measured while a batch ran.
        budget_bytes: The budget.
        step_s: Measured for one batch.
        place: The device that the budget is about; nothing for the memory of processes.
        faster: A smaller size that was faster in trials, and how many times.
        whole_bytes: About what whole batches would need, where they do not fit.
        kept_bytes: What the process keeps of a trial that passed the budget, if one did.
        levers: What is changed in the model.
        changes: What is changed beside the size of micro-batches, in words.
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
    levers: Levers = field(default=Levers())
    changes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.size is None:
            lines = [f"batches of {self.batch_size} stay whole"]
        else:
            number = -(-self.batch_size // self.size)
            rest = self.batch_size % self.size
            last = f", the last of {rest}" if rest else ""
            lines = [
                f"batches of {self.batch_size} run in {number} micro-batches of {self.size}{last}"
            ]
        lines += self.changes
        peak = f"peak {format_size(self.peak_bytes)} of {format_size(self.budget_bytes)}"
        place = f" on {self.place}" if self.place else ""
        lines.append(f"measured: {peak}{place}, {self.step_s:.3g} s per batch")
        if self.kept_bytes is not None:
            lines.append(
                f"a larger trial took more than the budget, and the framework keeps "
                f"{format_size(self.kept_bytes)}; the next start tries this size first"
            )
        if self.faster is not None:
            size, ratio = self.faster
            lines.append(
                f"micro-batches of {size} were {ratio:.1f}x faster in trials (see memfit.split)"
            )
        if self.whole_bytes is not None:
            lines.append(f"whole batches would need about {format_size(self.whole_bytes)}")
        if self.refused:
            lines.append(f"not done: {', '.join(self.refused)}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a budget cannot be kept, and what would do.

    Attributes:
        budget_bytes: The budget.
        idle_bytes: What is taken before training.
        batch_size: Samples in a batch.
        fed_bytes: What is taken with one batch and its copies, where that is too much already.
        least_bytes: The smallest budget that would do, where it is known.
        why_whole: Why batches have to stay whole; `None` if they run in micro-batches.
    """

    budget_bytes: int
    idle_bytes: int
    batch_size: int
    fed_bytes: int | None = None
    least_bytes: int | None = None
    why_whole: str | None = None

    def __str__(self) -> str:
        taken = (
            f"The budget of {format_size(self.budget_bytes)} cannot be kept: "
            f"{format_size(self.idle_bytes)} are in use before training, and"
        )
        if self.fed_bytes is not None:
            return (
                f"{taken} {format_size(self.fed_bytes)} with one batch of {self.batch_size} "
                "and its copies, before the step itself. Give clearly more than that, or make "
                "batch_size smaller."
            )
        what = "one sample at a time" if self.why_whole is None else "a whole batch"
        why = f" {self.why_whole}" if self.why_whole is not None else ""
        return (
            f"{taken} {what} needs about {format_size(self.least_bytes or 0)} in all. Give at "
            f"least that, or a smaller model.{why}"
        )
