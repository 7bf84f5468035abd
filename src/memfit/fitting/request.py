"""What a user asks of a training within a budget."""

from collections.abc import Sequence
from dataclasses import dataclass

from memfit.budget import Budget
from memfit.errors import UsageError
from memfit.fitting.levers.micro_batches import check_batchnorm
from memfit.fitting.proof.gate import UNVERIFIED

_ALLOWED = ("precision", UNVERIFIED)


@dataclass(frozen=True, slots=True)
class Request:
    """What a user asks for.

    Attributes:
        budget: What may be taken.
        allow: What may change the result, or is done without a proof that it does not.
        batchnorm: What BatchNormalization may do.
    """

    budget: Budget
    allow: Sequence[str] = ()
    batchnorm: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.allow, str) or any(one not in _ALLOWED for one in self.allow):
            raise UsageError(
                'allow must be a list that contains nothing but "precision" and "unverified". '
                f"Received: allow={self.allow!r}."
            )
        check_batchnorm(self.batchnorm)
