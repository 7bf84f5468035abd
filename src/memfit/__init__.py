"""memfit keeps Keras training inside the memory there is.

```
memfit run train.py        why does memory grow? no change to the script
memfit report              one offline page of the newest run
```
"""

import importlib
from typing import TYPE_CHECKING, Any

from memfit.errors import InvalidSizeError as InvalidSizeError
from memfit.errors import IsolatedError as IsolatedError
from memfit.errors import MemfitError as MemfitError
from memfit.errors import RunExistsError as RunExistsError
from memfit.errors import RunNotFoundError as RunNotFoundError
from memfit.errors import UsageError as UsageError

if TYPE_CHECKING:
    from memfit.act.isolated import isolated as isolated
    from memfit.act.session import SurvivorWarning as SurvivorWarning
    from memfit.act.session import session as session
    from memfit.agent.callbacks import MemoryMonitor as MemoryMonitor

__version__ = "0.1.0"
__all__ = [
    "InvalidSizeError",
    "IsolatedError",
    "MemfitError",
    "MemoryMonitor",
    "RunExistsError",
    "RunNotFoundError",
    "SurvivorWarning",
    "UsageError",
    "isolated",
    "session",
]
# Loaded when they are asked for: a Keras callback needs Keras, `import memfit` does not.
_LATER = {
    "MemoryMonitor": ("memfit.agent.callbacks", "MemoryMonitor"),
    "SurvivorWarning": ("memfit.act.session", "SurvivorWarning"),
    "isolated": ("memfit.act.isolated", "isolated"),
    "session": ("memfit.act.session", "session"),
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        module, attribute = _LATER[name]
        return getattr(importlib.import_module(module), attribute)
    raise AttributeError(f"module 'memfit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
