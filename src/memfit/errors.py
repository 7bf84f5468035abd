"""What memfit raises.

```
MemfitError
├── InvalidSizeError (ValueError)       a memory size cannot be read
├── UsageError (ValueError)             a command was called in a way that cannot work
├── BudgetError (MemoryError)           a training cannot be made to fit
├── RunNotFoundError (FileNotFoundError)  there is no such run
├── RunExistsError (FileExistsError)    a folder already holds a run
├── DataNotFoundError (FileNotFoundError)  there is no such data
├── DataError (ValueError)              data cannot be streamed as it is
│   └── DataChangedError                data is not what it was
├── MissingPackageError (ImportError)   a kind of data needs a package that is not installed
└── IsolatedError (RuntimeError)        a process of its own ended without a result
```

Every message says what was received, what was expected and what to do next.
"""

from collections.abc import Sequence


class MemfitError(Exception):
    """Root of every error that memfit raises on purpose."""

    exit_code = 2


class InvalidSizeError(MemfitError, ValueError):
    """A memory size cannot be read."""

    def __init__(self, received: str, *, units: Sequence[str]) -> None:
        super().__init__(
            f"Cannot read a memory size. Received: {received!r}. "
            f"Expected a number above zero and a unit, one of {', '.join(units)}. "
            'Write it like "512MiB" or "8GB".'
        )
        self.received = received


class UsageError(MemfitError, ValueError):
    """A command was called in a way that cannot work."""


class BudgetError(MemfitError, MemoryError):
    """A training cannot be made to fit into its budget."""


class RunNotFoundError(MemfitError, FileNotFoundError):
    """There is no such run."""

    def __str__(self) -> str:
        return str(self.args[0])


class RunExistsError(MemfitError, FileExistsError):
    """A folder already holds a run."""

    def __str__(self) -> str:
        return str(self.args[0])


class DataNotFoundError(MemfitError, FileNotFoundError):
    """There is no such data."""

    def __str__(self) -> str:
        return str(self.args[0])


class DataError(MemfitError, ValueError):
    """Data cannot be streamed as it is."""


class DataChangedError(DataError):
    """Data is not what it was when the stream, or its state, was made."""


class MissingPackageError(MemfitError, ImportError):
    """A kind of data needs a package that is not installed."""


class IsolatedError(MemfitError, RuntimeError):
    """A function that ran in a process of its own gave no result."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            f"{name}() ran in a process of its own and gave no result: {reason}. "
            "Nothing of this process is touched; run it with less data, or look at its own output."
        )
        self.reason = reason
        self._name = name

    def __reduce__(self) -> tuple[type["IsolatedError"], tuple[str, str]]:
        return IsolatedError, (self._name, self.reason)
