"""Whether an error says that memory ran out: one module a framework, asked here.

Types are told by name and module, so nothing is imported. Text is read only of errors whose type
can mean this, and only the framework's own wording counts: a disk that is full is a
`ResourceExhaustedError` too. The messages are kept in `tests/recordings/out_of_memory.toml`.
"""

import errno
import importlib
from collections.abc import Iterator
from typing import Protocol, cast

from memfit.backends import BACKEND_NAMES


class Recogniser(Protocol):
    """What is asked of a framework's module."""

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Returns whether `error` is how this framework says that memory ran out."""


def is_out_of_memory(error: BaseException) -> bool:
    """Returns whether `error`, or what it was raised from, says that memory ran out.

    Of the device or of the machine, in any framework, NumPy or Python itself.

    Example:
    >>> is_out_of_memory(MemoryError())
    True
    >>> is_out_of_memory(ValueError("out of memory"))
    False
    """
    return any(_says_so(one) for one in _and_its_reasons(error))


def type_names(error: BaseException, package: str) -> frozenset[str]:
    """Returns the names of the types of `error` that `package` defines."""
    kinds = (kind for kind in type(error).__mro__ if kind.__module__.split(".")[0] == package)
    return frozenset(kind.__name__ for kind in kinds)


def message(error: BaseException) -> str:
    """Returns what `error` says, without the arguments of a layer that Keras adds to it."""
    return str(error).partition("\n\nArguments received by ")[0]


def _says_so(error: BaseException) -> bool:
    if isinstance(error, OSError):  # a process or a mapping that cannot be made
        return error.errno == errno.ENOMEM
    # NumPy's error and `std::bad_alloc` arrive as `MemoryError`.
    return isinstance(error, MemoryError) or any(
        _recogniser(name).is_out_of_memory(error) for name in BACKEND_NAMES
    )


def _recogniser(name: str) -> Recogniser:
    return cast("Recogniser", importlib.import_module(f"{__name__}.{name}"))


def _and_its_reasons(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    seen: set[int] = set()
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or _raised_while_handling(current)


def _raised_while_handling(error: BaseException) -> BaseException | None:
    # An error inside a layer is raised anew by Keras, `from None`. Of one whose type takes more
    # than a text, as NumPy's does, nothing but this reference is left.
    is_kept = not error.__suppress_context__ or hasattr(error, "_keras_call_info_injected")
    return error.__context__ if is_kept else None
