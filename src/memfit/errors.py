"""What memfit raises.

```
MemfitError
├── InvalidSizeError (ValueError)       a memory size cannot be read
├── UsageError (ValueError)             a command was called in a way that cannot work
├── RunNotFoundError (FileNotFoundError)  there is no such run
└── RunExistsError (FileExistsError)    a folder already holds a run
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


class RunNotFoundError(MemfitError, FileNotFoundError):
    """There is no such run."""

    def __str__(self) -> str:
        return str(self.args[0])


class RunExistsError(MemfitError, FileExistsError):
    """A folder already holds a run."""

    def __str__(self) -> str:
        return str(self.args[0])
