"""What a user asks of a training within a budget."""

from collections.abc import Sequence
from dataclasses import dataclass

from memfit.errors import UsageError
from memfit.fitting.levers.micro_batches import check_batchnorm
from memfit.units import parse_size

_ALLOWED = ("precision",)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a user asks for.

    Attributes:
        budget: What this process and those it starts may take, such as `"4GB"`.
        device_budget: What tensors may take of an accelerator. One of the two is given.
        allow: What may change the result.
        batchnorm: What BatchNormalization may do.
        batch_size: What is taken for arrays if nobody says.
    """

    budget: str | None = None
    device_budget: str | None = None
    allow: Sequence[str] = ()
    batchnorm: str | None = None
    batch_size: int | None = None

    def __post_init__(self) -> None:
        if (self.budget is None) == (self.device_budget is None):
            raise UsageError(
                "Give one of budget (the memory of this process and those it starts) and "
                f"device_budget (that of the accelerator). Received: budget={self.budget!r}, "
                f"device_budget={self.device_budget!r}."
            )
        name = "device_budget" if self.is_on_device else "budget"
        if not isinstance(getattr(self, name), str):
            raise UsageError(
                f"{name} must be text with a unit. Received: {name}={getattr(self, name)!r}. "
                'Write it like "4GB" or "512MiB".'
            )
        if isinstance(self.allow, str) or any(one not in _ALLOWED for one in self.allow):
            raise UsageError(
                'allow must be a list of words, of which there is "precision". '
                f"Received: allow={self.allow!r}."
            )
        check_batchnorm(self.batchnorm)

    @property
    def is_on_device(self) -> bool:
        """Whether the budget is about accelerators."""
        return self.device_budget is not None

    @property
    def budget_bytes(self) -> int:
        """The budget in bytes."""
        return parse_size(self.budget or self.device_budget or "")
