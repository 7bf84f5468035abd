"""`tf.data.Dataset`: read once, when the stream is made. TensorFlow is the user's own.

Elements are rows, unless the first axis of all of them is unknown, as `.batch()` makes it.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from memfit.errors import UsageError
from memfit.streaming.data.rows import flatten
from memfit.streaming.data.source import Source, Values
from memfit.streaming.sources.collect import collect_batches, collect_rows
from memfit.streaming.store.spool_once import spool_once

_INFINITE = -1
# Rows that TensorFlow batches itself, which is quicker than one by one.
_CHUNK_BYTES = 1 << 20
_CHUNK_ROWS = 4096
_NAME = "the tf.data.Dataset"


def accepts_object(value: Any) -> bool:
    """Whether this is a dataset of TensorFlow."""
    return (
        type(value).__module__.split(".")[0] == "tensorflow"
        and hasattr(value, "element_spec")
        and hasattr(value, "cardinality")
    )


def open_object(value: Any) -> Source:
    """Returns the rows of a dataset.

    Raises:
        UsageError: It never ends.
        DataError: Its rows differ, or there are none.
    """
    cardinality = int(value.cardinality())
    if cardinality == _INFINITE:
        raise UsageError(
            "Cannot stream a tf.data.Dataset that never ends. Leave out its repeat(): fit() asks "
            "for as many epochs as it needs. Or take(...) a number of elements."
        )
    total = cardinality if cardinality >= 0 else None
    shapes = [getattr(one, "shape", None) for one in _specs(value)]
    if all(_is_batch(one) for one in shapes):
        return spool_once(collect_batches(value, _NAME), name=_NAME)
    return spool_once(_rows(value), name=_NAME, total=total)


def _rows(value: Any) -> Iterator[Mapping[str, Values]]:
    specs = _specs(value)
    if all(hasattr(one, "dtype") and one.shape.is_fully_defined() for one in specs):
        size = sum(math.prod(one.shape) * max(one.dtype.size or 0, 1) for one in specs)
        chunk_rows = max(1, min(_CHUNK_BYTES // max(size, 1), _CHUNK_ROWS))
        return collect_batches(value.batch(chunk_rows), _NAME)
    return collect_rows(value, _NAME)


def _specs(value: Any) -> list[Any]:
    return list(flatten(value.element_spec, _NAME).values())


def _is_batch(shape: Any) -> bool:
    return shape is not None and shape.rank is not None and shape.rank > 0 and shape[0] is None
