"""What can only be iterated: generator functions, torch's IterableDataset, batches of any kind.

It is read once, when the stream is made, and kept on disk as long as the stream is there.
"""

from typing import Any

from memfit.errors import UsageError
from memfit.streaming.data.source import Source
from memfit.streaming.sources.collect import collect_batches, collect_rows
from memfit.streaming.sources.iterables import Batched, begin, check_iterable, name_of
from memfit.streaming.store.spool_once import spool_once


def accepts(value: Any) -> bool:
    """Whether this can be iterated, or is a function that returns what can."""
    is_function = callable(value) and not isinstance(value, type)
    return is_function or hasattr(value, "__iter__") or hasattr(value, "__next__")


def open_object(value: Any) -> Source:
    """Returns the rows of what can be iterated.

    Raises:
        UsageError: It can be iterated only once, or gives batches and nobody said so.
        DataError: Its rows differ, or there are none.
    """
    if isinstance(value, Batched):
        return spool_once(collect_batches(value, value.name), name=value.name)
    if any(one.__name__ == "DataLoader" for one in type(value).__mro__):
        raise UsageError(
            "Cannot stream the DataLoader row by row: it gives batches. Give its rows, "
            "memfit.stream(loader.dataset, ...), or its batches, "
            "memfit.stream(memfit.batches(loader), ...)."
        )
    check_iterable(value)
    name = name_of(value)
    return spool_once(collect_rows(begin(value), name), name=name)
