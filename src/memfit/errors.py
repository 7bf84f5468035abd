"""The errors that memfit raises.

```
MemfitError
├── InvalidSizeError (ValueError)          a memory size cannot be read
├── UsageError (ValueError)                a command was called in a way that cannot work
├── BudgetError (MemoryError)              a training cannot be made to fit
├── RunNotFoundError (FileNotFoundError)   a run was not found
├── RunExistsError (FileExistsError)       a folder already holds a run
├── DataNotFoundError (FileNotFoundError)  data was not found
├── DataError (ValueError)                 data cannot be streamed as it is
│   └── DataChangedError                   data has changed
├── MissingPackageError (ImportError)      a kind of data needs a package that is not installed
└── IsolatedError (RuntimeError)           a function in its own process returned no result
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
    """A run was not found."""

    def __str__(self) -> str:
        return str(self.args[0])


class RunExistsError(MemfitError, FileExistsError):
    """A folder already holds a run."""

    def __str__(self) -> str:
        return str(self.args[0])


class DataNotFoundError(MemfitError, FileNotFoundError):
    """Data was not found."""

    def __str__(self) -> str:
        return str(self.args[0])


class DataError(MemfitError, ValueError):
    """Data cannot be streamed as it is."""


class DataChangedError(DataError):
    """Data has changed since the stream, or its state, was made."""


class MissingPackageError(MemfitError, ImportError):
    """A kind of data needs a package that is not installed."""


class IsolatedError(MemfitError, RuntimeError):
    """A function that ran in its own process returned no result."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            f"{name}() ran in its own process and returned no result: {reason}. "
            "This process is not affected. Run it with less data, or check its own output."
        )
        self.reason = reason
        self._name = name

    def __reduce__(self) -> tuple[type["IsolatedError"], tuple[str, str]]:
        return IsolatedError, (self._name, self.reason)
