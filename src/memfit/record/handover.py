"""What a supervisor and the processes below it agree on: the run's folder, how often to sample."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from memfit.budget import Budget

_RUN = "MEMFIT_RUN"
_SUPERVISOR = "MEMFIT_SUPERVISOR"
_LOGS = "MEMFIT_LOGS"
_BUDGET = "MEMFIT_BUDGET"
_AT_FIRST_S = 0.5
# A kill may lose one second at most, so it never gets slower than this.
_LATER_S = 0.9
_AT_FIRST_UNTIL_S = 600.0


@dataclass(frozen=True, slots=True)
class Handover:
    """What a training process must know of its run.

    Attributes:
        run: Folder of the run.
        supervisor_pid: The supervisor's process.
        adds_logs: Whether memory figures go into Keras's logs.
        budget: What every `fit` may take; `None` if the user gave no budget.
    """

    run: Path
    supervisor_pid: int
    adds_logs: bool = False
    budget: Budget | None = None

    def to_environment(self) -> dict[str, str]:
        """Returns the environment variables that carry it."""
        budget = self.budget
        return {
            _RUN: str(self.run.resolve()),
            _SUPERVISOR: str(self.supervisor_pid),
            _LOGS: "1" if self.adds_logs else "0",
            **({} if budget is None else {_BUDGET: f"{budget.place}:{budget.size_bytes}"}),
        }

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self | None:
        """Returns what a supervisor left in `environment`; `None` if there was none."""
        if _RUN not in environment:
            return None
        return cls(
            run=Path(environment[_RUN]),
            supervisor_pid=int(environment[_SUPERVISOR]),
            adds_logs=environment[_LOGS] == "1",
            budget=_read_budget(environment.get(_BUDGET)),
        )


def sample_every_s(elapsed_s: float) -> float:
    """Returns the time until the next sample: a long run needs fewer of them.

    Args:
        elapsed_s: How long the run has lasted.
    """
    return _AT_FIRST_S if elapsed_s < _AT_FIRST_UNTIL_S else _LATER_S


def _read_budget(written: str | None) -> Budget | None:
    if written is None:
        return None
    place, size_bytes = written.split(":")
    return Budget(int(size_bytes), place)
