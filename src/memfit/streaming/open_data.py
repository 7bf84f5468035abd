"""Opens what a user gives to `stream`, and says which columns are inputs, targets and weights."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from memfit.errors import UsageError
from memfit.streaming.data.layout import Layout, Tree, lay_out
from memfit.streaming.data.reading import ReadOptions
from memfit.streaming.data.rows import PARTS
from memfit.streaming.data.source import Source
from memfit.streaming.sources import open_source
from memfit.streaming.views.matrix import Matrix
from memfit.streaming.views.zip import Zip

_ALL = ReadOptions()


def open_data(value: Any, options: ReadOptions = _ALL) -> tuple[Source, Layout]:
    """Returns the source for what a user gives to `stream`, and how it is laid out.

    Args:
        value: A path, glob, list, array or object; or a tuple of features, labels and weights; or
            a dict of features by name. Features and labels may be tuples and dicts themselves.
        options: Which columns to read, and how.

    Raises:
        UsageError: The value cannot be features, labels and weights.
        DataError: There is no such column.
    """
    if type(value).__name__ == "DatasetDict":
        raise UsageError(
            f"A DatasetDict holds several datasets: {', '.join(map(str, value))}. Give one of "
            f"them, such as data[{next(iter(value), 'train')!r}]."
        )
    if isinstance(value, tuple | Mapping):
        return _open_parts(value, options)
    label, columns = options.label, options.columns
    if columns is not None and label is not None and label not in columns:
        options = dataclasses.replace(options, columns=[*columns, label])
    source = open_source(value, options)
    layout = lay_out(source.schema, label)
    if options.features == "matrix":
        source = Matrix(source, [one.name for one in source.schema if one.name != label])
        layout = Layout((source.name,) if label is None else (source.name, label))
    return source, layout


def _open_parts(value: Any, options: ReadOptions) -> tuple[Source, Layout]:
    _refuse_names(value, options)
    parts = value if isinstance(value, tuple) else (value,)
    if not 1 <= len(parts) <= len(PARTS):
        raise UsageError(
            f"A tuple is (features,), (features, labels) or (features, labels, weights). "
            f"Received: a tuple of {len(parts)}."
        )
    opened: dict[str, Source] = {}
    trees = [
        _open_tree(one, name, opened, options) for name, one in zip(PARTS, parts, strict=False)
    ]
    return Zip(opened), Layout(tuple(trees))


def _refuse_names(value: Any, options: ReadOptions) -> None:
    """Raises if an argument speaks of the columns of one source, and there are several."""
    for name in ("label", "columns", "features"):
        received = getattr(options, name)
        if received not in (None, "columns"):
            raise UsageError(
                f"{name} is about the columns of one source. Received: {name}={received!r} and "
                f"a {type(value).__name__}. Leave {name} out."
            )


def _open_tree(value: Any, name: str, opened: dict[str, Source], options: ReadOptions) -> Tree:
    """Opens every source in a tree and returns the tree of the columns' names."""
    if isinstance(value, Mapping):
        return {
            key: _open_tree(one, f"{name}.{key}", opened, options) for key, one in value.items()
        }
    if isinstance(value, tuple):
        return tuple(
            _open_tree(one, f"{name}.{at}", opened, options) for at, one in enumerate(value)
        )
    source = open_source(value, options)
    opened[name] = source
    if len(source.schema) == 1:
        return name
    return {one.name: f"{name}.{one.name}" for one in source.schema}
