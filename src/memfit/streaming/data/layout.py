"""How columns become what Keras takes: inputs, targets and sample weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memfit.errors import DataError
from memfit.streaming.data.rows import PARTS
from memfit.streaming.data.source import Schema

# A column's name, or several in a tuple or a dict.
Tree = Any


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns are inputs, targets and weights.

    Attributes:
        parts: One to three trees of column names.

    Example:
    >>> Layout(("x", "y")).arrange({"y": 2, "x": 1})
    (1, 2)
    """

    parts: tuple[Tree, ...]

    def arrange(self, columns: Mapping[str, Any]) -> tuple[Any, ...]:
        """Returns the columns in the places of their names."""
        return tuple(_fill(tree, columns) for tree in self.parts)


def unwrap(batch: tuple[Any, ...]) -> Any:
    """Returns a batch as a loop over it expects: alone if there are only inputs."""
    return batch[0] if len(batch) == 1 else batch


def lay_out(schema: Schema, label: str | None = None) -> Layout:
    """Returns the layout that the names of columns tell.

    `x`, `y` and `weight` are inputs, targets and weights, and so are those that begin with
    `x.`, `y.` and `weight.`; where other names are, all columns are inputs, except for `label`.
    """
    names = [one.name for one in schema]
    if label is not None:
        if label not in names:
            raise DataError(f"There is no column {label!r}. Found: {', '.join(names)}.")
        return Layout((_features([one for one in names if one != label]), label))
    heads = {name.split(".")[0] for name in names}
    if "x" in heads and heads <= set(PARTS):
        return Layout(tuple(_nest(part, names) for part in PARTS if part in heads))
    return Layout((_features(names),))


def _features(names: Sequence[str]) -> Tree:
    return names[0] if len(names) == 1 else {name: name for name in names}


def _nest(part: str, names: Sequence[str]) -> Tree:
    """The tree behind names such as `x`, or `x.0` and `x.1`, or `x.left` and `x.right`."""
    inner = {
        name.removeprefix(f"{part}.").split(".")[0]: None
        for name in names
        if name.startswith(f"{part}.")
    }
    if not inner:
        return part
    below = {key: _nest(f"{part}.{key}", names) for key in inner}
    if all(key.isdigit() for key in below):
        return tuple(below.values())
    return below


def _fill(tree: Tree, columns: Mapping[str, Any]) -> Any:
    if isinstance(tree, str):
        return columns[tree]
    if isinstance(tree, tuple):
        return tuple(_fill(one, columns) for one in tree)
    return {key: _fill(one, columns) for key, one in tree.items()}
