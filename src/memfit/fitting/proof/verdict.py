"""What a proof found, as a value and in words."""

from dataclasses import dataclass
from enum import Enum


class Outcome(Enum):
    """How a proof ended."""

    SAME = "the same training"
    DIFFERENT = "another training"
    UNCLEAR = "cannot be proved"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a lever leaves the training the same.

    Attributes:
        outcome: Whether it does.
        why: What stands in the way, as a sentence; nothing if it is the same.
        num_rows: How many rows of the user's batch a whole step ran on.
        num_loss_rows: How many the losses by themselves were compared on.
        collects: Whether metrics must see the predictions of the whole batch.
        draws_once: Whether the model draws random numbers that are one for a whole batch.
        taken_s: How long the proof took.
    """

    outcome: Outcome
    why: str = ""
    num_rows: int = 0
    collects: bool = False
    draws_once: bool = False
    taken_s: float = 0.0

    @property
    def is_same(self) -> bool:
        """Whether the training is proved to be the same."""
        return self.outcome is Outcome.SAME

    def __str__(self) -> str:
        if not self.is_same:
            return self.why
        text = f"proved on {self.num_rows} rows of the first batch in {self.taken_s:.1f} s"
        if self.draws_once:
            text += (
                "; random numbers that are drawn once a batch are drawn once a micro-batch instead"
            )
        return text
