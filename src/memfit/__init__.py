"""memfit keeps Keras training inside the memory there is.

```
memfit run train.py        why does memory grow? no change to the script
memfit run --budget 4GB train.py   every model.fit stays within the budget
memfit report              one offline page of the newest run
```
"""

import importlib
from typing import TYPE_CHECKING, Any

from memfit.errors import BudgetError as BudgetError
from memfit.errors import DataChangedError as DataChangedError
from memfit.errors import DataError as DataError
from memfit.errors import DataNotFoundError as DataNotFoundError
from memfit.errors import InvalidSizeError as InvalidSizeError
from memfit.errors import IsolatedError as IsolatedError
from memfit.errors import MemfitError as MemfitError
from memfit.errors import MissingPackageError as MissingPackageError
from memfit.errors import RunExistsError as RunExistsError
from memfit.errors import RunNotFoundError as RunNotFoundError
from memfit.errors import UsageError as UsageError

if TYPE_CHECKING:
    from memfit.agent.monitor import MemoryMonitor as MemoryMonitor
    from memfit.fitting.fit import BudgetWarning as BudgetWarning
    from memfit.fitting.fit import fit as fit
    from memfit.fitting.levers.accelerators import configure as configure
    from memfit.fitting.levers.change import Change as Change
    from memfit.fitting.levers.guard import guard as guard
    from memfit.fitting.levers.micro_batches import split as split
    from memfit.fitting.levers.precision import reduce_precision as reduce_precision
    from memfit.fitting.levers.recompute import recompute as recompute
    from memfit.sessions.isolated import isolated as isolated
    from memfit.sessions.session import SurvivorWarning as SurvivorWarning
    from memfit.sessions.session import session as session
    from memfit.streaming.ingest.ingest import ingest as ingest
    from memfit.streaming.sources.iterables import batches as batches
    from memfit.streaming.sources.sql import sql as sql
    from memfit.streaming.stream import stream as stream

__version__ = "0.1.0"
__all__ = [
    "BudgetError",
    "BudgetWarning",
    "Change",
    "DataChangedError",
    "DataError",
    "DataNotFoundError",
    "InvalidSizeError",
    "IsolatedError",
    "MemfitError",
    "MemoryMonitor",
    "MissingPackageError",
    "RunExistsError",
    "RunNotFoundError",
    "SurvivorWarning",
    "UsageError",
    "batches",
    "configure",
    "fit",
    "guard",
    "ingest",
    "isolated",
    "recompute",
    "reduce_precision",
    "session",
    "split",
    "sql",
    "stream",
]
# Loaded when they are asked for: a Keras callback needs Keras, `import memfit` does not.
_LATER = {
    "BudgetWarning": ("memfit.fitting.fit", "BudgetWarning"),
    "Change": ("memfit.fitting.levers.change", "Change"),
    "MemoryMonitor": ("memfit.agent.monitor", "MemoryMonitor"),
    "SurvivorWarning": ("memfit.sessions.session", "SurvivorWarning"),
    "batches": ("memfit.streaming.sources.iterables", "batches"),
    "configure": ("memfit.fitting.levers.accelerators", "configure"),
    "fit": ("memfit.fitting.fit", "fit"),
    "guard": ("memfit.fitting.levers.guard", "guard"),
    "ingest": ("memfit.streaming.ingest.ingest", "ingest"),
    "isolated": ("memfit.sessions.isolated", "isolated"),
    "recompute": ("memfit.fitting.levers.recompute", "recompute"),
    "reduce_precision": ("memfit.fitting.levers.precision", "reduce_precision"),
    "session": ("memfit.sessions.session", "session"),
    "split": ("memfit.fitting.levers.micro_batches", "split"),
    "sql": ("memfit.streaming.sources.sql", "sql"),
    "stream": ("memfit.streaming.stream", "stream"),
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        module, attribute = _LATER[name]
        return getattr(importlib.import_module(module), attribute)
    raise AttributeError(f"module 'memfit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
