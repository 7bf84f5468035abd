"""memfit keeps Keras training inside the memory there is.

```
memfit run train.py        why does memory grow? no change to the script
memfit report              one offline page of the newest run
```
"""

from typing import TYPE_CHECKING, Any

from memfit.errors import InvalidSizeError as InvalidSizeError
from memfit.errors import MemfitError as MemfitError
from memfit.errors import RunExistsError as RunExistsError
from memfit.errors import RunNotFoundError as RunNotFoundError
from memfit.errors import UsageError as UsageError

if TYPE_CHECKING:
    from memfit.agent.callbacks import MemoryMonitor as MemoryMonitor

__version__ = "0.1.0"
__all__ = [
    "InvalidSizeError",
    "MemfitError",
    "MemoryMonitor",
    "RunExistsError",
    "RunNotFoundError",
    "UsageError",
]


def __getattr__(name: str) -> Any:
    # A Keras callback needs Keras; `import memfit` does not.
    if name == "MemoryMonitor":
        from memfit.agent.callbacks import MemoryMonitor

        return MemoryMonitor
    raise AttributeError(f"module 'memfit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
