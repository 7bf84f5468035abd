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
    from memfit.act.change import Change as Change
    from memfit.act.configure import configure as configure
    from memfit.act.fitting import BudgetWarning as BudgetWarning
    from memfit.act.fitting import fit as fit
    from memfit.act.guarding import guard as guard
    from memfit.act.isolated import isolated as isolated
    from memfit.act.pieces import split as split
    from memfit.act.precision import reduce_precision as reduce_precision
    from memfit.act.recompute import recompute as recompute
    from memfit.act.session import SurvivorWarning as SurvivorWarning
    from memfit.act.session import session as session
    from memfit.act.streaming.batched import batches as batches
    from memfit.act.streaming.ingest import ingest as ingest
    from memfit.act.streaming.query import sql as sql
    from memfit.act.streaming.stream import stream as stream
    from memfit.agent.callbacks import MemoryMonitor as MemoryMonitor

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
    "BudgetWarning": ("memfit.act.fitting", "BudgetWarning"),
    "Change": ("memfit.act.change", "Change"),
    "MemoryMonitor": ("memfit.agent.callbacks", "MemoryMonitor"),
    "SurvivorWarning": ("memfit.act.session", "SurvivorWarning"),
    "batches": ("memfit.act.streaming.batched", "batches"),
    "configure": ("memfit.act.configure", "configure"),
    "fit": ("memfit.act.fitting", "fit"),
    "guard": ("memfit.act.guarding", "guard"),
    "ingest": ("memfit.act.streaming.ingest", "ingest"),
    "isolated": ("memfit.act.isolated", "isolated"),
    "recompute": ("memfit.act.recompute", "recompute"),
    "reduce_precision": ("memfit.act.precision", "reduce_precision"),
    "session": ("memfit.act.session", "session"),
    "split": ("memfit.act.pieces", "split"),
    "sql": ("memfit.act.streaming.query", "sql"),
    "stream": ("memfit.act.streaming.stream", "stream"),
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        module, attribute = _LATER[name]
        return getattr(importlib.import_module(module), attribute)
    raise AttributeError(f"module 'memfit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
