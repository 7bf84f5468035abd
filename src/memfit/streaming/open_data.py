"""Opens what a user gives to `stream`, and says which columns are inputs, targets and weights."""

from collections.abc import Mapping, Sequence
from typing import Any

from memfit.errors import UsageError
from memfit.streaming.data.layout import Layout, Tree, lay_out
from memfit.streaming.data.reading import check_columns
from memfit.streaming.data.rows import PARTS
from memfit.streaming.data.source import Source
from memfit.streaming.sources import open_source
from memfit.streaming.views.matrix import Matrix
from memfit.streaming.views.zip import Together

FEATURES = ("columns", "matrix")


def open_data(
    value: Any,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    features: str = "columns",
    image_size: tuple[int, int] | None = None,
    filesystem: Any = None,
) -> tuple[Source, Layout]:
    """Returns the source for what a user gives to `stream`, and how it is laid out.

    Args:
        value: A path, glob, list, array or object; or a tuple of features, labels and weights; or
            a dict of features by name. Features and labels may be tuples and dicts themselves.
        label: The column that is the label, where one source has them all.
        columns: The columns to read of one source; the label need not be among them.
        features: `"matrix"` to put all columns but the label side by side.
        image_size: Height and width that pictures are resized to.
        filesystem: A `pyarrow.fs.FileSystem` that paths are in.

    Raises:
        UsageError: The value cannot be features, labels and weights.
        DataError: There is no such column.
    """
    if features not in FEATURES:
        raise UsageError(f'features must be "columns" or "matrix". Received: {features!r}.')
    if columns is not None:
        check_columns(columns)
    if type(value).__name__ == "DatasetDict":
        raise UsageError(
            f"A DatasetDict holds several datasets: {', '.join(map(str, value))}. Give one of "
            f"them, such as data[{next(iter(value), 'train')!r}]."
        )
    if isinstance(value, tuple | Mapping):
        _refuse_names(value, label=label, columns=columns, features=features)
        parts = value if isinstance(value, tuple) else (value,)
        if not 1 <= len(parts) <= len(PARTS):
            raise UsageError(
                f"A tuple is (features,), (features, labels) or (features, labels, weights). "
                f"Received: a tuple of {len(parts)}."
            )
        opened: dict[str, Source] = {}
        named = zip(PARTS, parts, strict=False)
        how = (image_size, filesystem)
        trees = [_open_tree(one, name, opened, how) for name, one in named]
        return Together(opened), Layout(tuple(trees))
    if columns is not None and label is not None and label not in columns:
        columns = [*columns, label]
    source = open_source(value, columns, image_size, filesystem)
    layout = lay_out(source.schema, label)
    if features == "matrix":
        source = Matrix(source, [one.name for one in source.schema if one.name != label])
        layout = Layout((source.name,) if label is None else (source.name, label))
    return source, layout


def _refuse_names(value: Any, **arguments: Any) -> None:
    """Raises if an argument speaks of the columns of one source, and there are several."""
    for name, received in arguments.items():
        if received not in (None, "columns"):
            raise UsageError(
                f"{name} is about the columns of one source. Received: {name}={received!r} and "
                f"a {type(value).__name__}. Leave {name} out."
            )


def _open_tree(value: Any, name: str, opened: dict[str, Source], how: tuple[Any, Any]) -> Tree:
    """Opens every source in a tree and returns the tree of the columns' names."""
    if isinstance(value, Mapping):
        return {key: _open_tree(one, f"{name}.{key}", opened, how) for key, one in value.items()}
    if isinstance(value, tuple):
        return tuple(_open_tree(one, f"{name}.{at}", opened, how) for at, one in enumerate(value))
    source = open_source(value, None, *how)
    opened[name] = source
    if len(source.schema) == 1:
        return name
    return {one.name: f"{name}.{one.name}" for one in source.schema}
