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


# Two figures nearer to each other than this are told as one.
_ALIKE = 1.05
# From this share of what a step adds on, the part that no batch size changes is told.
_MUCH = 0.2


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a budget cannot be kept, and what would do.

    Attributes:
        budget_bytes: The budget.
        idle_bytes: What is taken before the first step.
        batch_size: Samples in a batch.
        least_bytes: The smallest budget that would do.
        whole_bytes: The smallest budget for whole batches, where that is known.
        fixed_bytes: What a step takes whatever its samples, where that is known.
        why_whole: Why batches have to stay whole; `None` if they run in micro-batches.
    """

    budget_bytes: int
    idle_bytes: int
    batch_size: int
    least_bytes: int
    whole_bytes: int | None = None
    fixed_bytes: int | None = None
    why_whole: str | None = None

    def __str__(self) -> str:
        sentences = [
            f"The budget of {format_size(self.budget_bytes)} cannot be kept, and nothing was "
            f"trained: {format_size(self.idle_bytes)} are in use before the first step.",
            *self._tell_fixed(),
            *self._tell_least(),
        ]
        if self.why_whole is not None:
            sentences.append(self.why_whole)
        return " ".join(sentences)

    def _tell_fixed(self) -> list[str]:
        """What neither smaller batches nor micro-batches save."""
        if self.fixed_bytes is None or self.fixed_bytes < _MUCH * (
            self.least_bytes - self.idle_bytes
        ):
            return []
        return [
            f"A step takes another {format_size(self.fixed_bytes)} whatever its samples: "
            "gradients, what the optimizer computes, and what the framework needs to compile."
        ]

    def _tell_least(self) -> list[str]:
        least = format_size(self.least_bytes)
        if self.why_whole is not None:
            return [
                f"Batches of {self.batch_size} stay whole, and need a budget of about {least}. "
                "Give at least that, or make batch_size or the model smaller."
            ]
        if self.whole_bytes is None or self.whole_bytes > _ALIKE * self.least_bytes:
            return [
                f"The smallest micro-batches need a budget of about {least}. Give at least that, "
                "or make the model smaller."
            ]
        more = format_size(max(self.whole_bytes, self.least_bytes))
        return [
            f"Micro-batches would save next to nothing: give a budget of about {more}, with which "
            f"batches of {self.batch_size} stay whole, or make the model smaller."
        ]
