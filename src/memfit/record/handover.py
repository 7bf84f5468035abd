"""How a supervisor tells the processes below it where their run is kept."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

_RUN = "MEMFIT_RUN"
_SUPERVISOR = "MEMFIT_SUPERVISOR"
_LOGS = "MEMFIT_LOGS"
_BUDGETS = {"budget": "MEMFIT_BUDGET", "device_budget": "MEMFIT_DEVICE_BUDGET"}


@dataclass(frozen=True, slots=True)
class Handover:
    """What a training process must know of its run.

    Attributes:
        run: Folder of the run.
        supervisor_pid: The supervisor's process.
        adds_logs: Whether memory figures go into Keras's logs.
        budgets: What every `fit` may take, such as `"4GB"`, under `"budget"` or
            `"device_budget"`; empty if nobody asked for one.
    """

    run: Path
    supervisor_pid: int
    adds_logs: bool = True
    budgets: Mapping[str, str] = field(default_factory=dict)

    def to_environment(self) -> dict[str, str]:
        """Returns the environment variables that carry it."""
        return {
            _RUN: str(self.run.resolve()),
            _SUPERVISOR: str(self.supervisor_pid),
            _LOGS: "1" if self.adds_logs else "0",
            **{_BUDGETS[name]: size for name, size in self.budgets.items()},
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
            budgets={
                name: environment[variable]
                for name, variable in _BUDGETS.items()
                if variable in environment
            },
        )
