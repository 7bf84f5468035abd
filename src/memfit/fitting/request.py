"""What a user asks of a training within a budget."""

from collections.abc import Sequence
from dataclasses import dataclass

from memfit.budget import Budget
from memfit.errors import UsageError
from memfit.fitting.levers.micro_batches import check_batchnorm

_ALLOWED = ("precision",)


@dataclass(frozen=True, slots=True)
class Request:
    """What a user asks for.

    Attributes:
        budget: What may be taken.
        allow: What may change the result.
        batchnorm: What BatchNormalization may do.
        batch_size: What is taken for arrays if nobody says.
    """

    budget: Budget
    allow: Sequence[str] = ()
    batchnorm: str | None = None
    batch_size: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.allow, str) or any(one not in _ALLOWED for one in self.allow):
            raise UsageError(
                'allow must be a list that contains nothing but "precision". '
                f"Received: allow={self.allow!r}."
            )
        check_batchnorm(self.batchnorm)
