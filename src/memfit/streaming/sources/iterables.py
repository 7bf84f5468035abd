"""What can only be iterated: generators, batches of any kind; `memfit.batches` marks the latter.

It is read once, when the stream is made, and kept on disk as long as the stream is there.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from memfit.backends.user_datasets import is_torch_loader
from memfit.errors import UsageError
from memfit.streaming.data.source import Source
from memfit.streaming.sources.collect import collect_batches, collect_rows, noting
from memfit.streaming.store.spool_once import spool_once


@dataclass(frozen=True, slots=True)
class BatchIterable:
    """Data that comes in batches.

    Attributes:
        value: What gives them.
    """

    value: Any

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return name_of(self.value)

    def __iter__(self) -> Iterator[Any]:
        if any(one.__name__ == "PyDataset" for one in type(self.value).__mro__):
            return (self.value[at] for at in range(len(self.value)))
        return begin(self.value)


def batches(value: Callable[[], Iterable[Any]] | Iterable[Any]) -> BatchIterable:
    """Marks data that comes in batches: `memfit.stream(memfit.batches(value), ...)`.

    They are read once, when the stream is made, and cut again into batches of its size.

    Args:
        value: A function without arguments that returns an iterator, such as a generator function;
            or an object that can be iterated more than once, as a torch `DataLoader`, a
            `tf.data.Dataset` or a `PyDataset`. A batch is a tuple `(features, labels)`, a dict or
            an array of arrays.

    Raises:
        UsageError: It cannot be iterated, or only once.

    Example:
    ```python
    def make_batches():
        for path in paths:
            yield load(path)          # features and labels of some rows

    data = memfit.stream(memfit.batches(make_batches), batch_size=256, shuffle=True)
    ```
    """
    check_iterable(value)
    return BatchIterable(value)


def begin(value: Any) -> Iterator[Any]:
    """Returns a new iterator over what a function gives, or over an object.

    Raises:
        UsageError: The function needs arguments, or gives nothing that can be iterated.
    """
    if not _is_function(value):
        return iter(value)
    name = name_of(value)
    with noting(f"the first of {name}"):
        found = value()
    if not hasattr(found, "__iter__"):
        raise UsageError(
            f"{name} returned a {type(found).__name__}. Expected an iterator: a function that "
            "yields rows, or returns what can be iterated."
        )
    return iter(found)


def check_iterable(value: Any) -> None:
    """Raises if this cannot be iterated more than once.

    Raises:
        UsageError: It cannot.
    """
    if hasattr(value, "__next__"):
        raise UsageError(
            f"Cannot stream an already started {type(value).__name__}: it can be read only once, "
            "and part of it may be consumed. Give what makes it: a function without arguments, "
            "such as the generator function itself (make_rows, not make_rows())."
        )
    if not _is_function(value) and not hasattr(value, "__iter__") and not _is_sequence(value):
        raise UsageError(
            f"Cannot iterate a {type(value).__name__}. Expected a function without arguments that "
            "returns an iterator, or an object that can be iterated."
        )
    if _is_function(value):
        _check_arguments(value)


def name_of(value: Any) -> str:
    """Returns what to call it in messages."""
    if _is_function(value):
        return f"{getattr(value, '__name__', type(value).__name__)}()"
    return f"the {type(value).__name__}"


def _check_arguments(value: Callable[..., Any]) -> None:
    import inspect

    try:
        inspect.signature(value).bind()
    except TypeError as error:
        raise UsageError(
            f"{name_of(value)} must take no arguments: {error}. Give them in a lambda: "
            f"memfit.stream(lambda: {name_of(value)[:-1]}...), ...)."
        ) from None
    except ValueError:  # written in C: unknown
        return


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, type) and not hasattr(value, "__iter__")


def _is_sequence(value: Any) -> bool:
    return hasattr(value, "__getitem__") and hasattr(value, "__len__")


def accepts_object(value: Any) -> bool:
    """Whether this can be iterated, or is a function that returns what can."""
    is_function = callable(value) and not isinstance(value, type)
    return is_function or hasattr(value, "__iter__") or hasattr(value, "__next__")


def open_object(value: Any) -> Source:
    """Returns the rows of what can be iterated.

    Raises:
        UsageError: It can be iterated only once, or gives batches without `memfit.batches`.
        DataError: Its rows differ, or there are none.
    """
    if isinstance(value, BatchIterable):
        return spool_once(collect_batches(value, value.name), name=value.name)
    if is_torch_loader(value):
        raise UsageError(
            "Cannot stream the DataLoader row by row: it gives batches. Give its rows, "
            "memfit.stream(loader.dataset, ...), or its batches, "
            "memfit.stream(memfit.batches(loader), ...)."
        )
    check_iterable(value)
    name = name_of(value)
    return spool_once(collect_rows(begin(value), name), name=name)
