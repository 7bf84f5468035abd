"""The rows of a user's batch that a proof runs on, and the micro-batches they are cut into."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MOST_ROWS = 32
FEW_ROWS = 16


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a batch.

    Attributes:
        batch: Inputs, targets and weights, NumPy arrays where they can be.
        number: How many rows it has.
        size: Rows in a micro-batch; the last has fewer.
    """

    batch: Any
    number: int
    size: int

    @property
    def sizes(self) -> frozenset[int]:
        """How many rows the whole and each micro-batch have."""
        return frozenset({self.number, self.size, self.number % self.size or self.size})

    def parts(self) -> Iterator[tuple[Any, float]]:
        """Gives the micro-batches, each with its share of the rows."""
        for begin in range(0, self.number, self.size):
            end = min(begin + self.size, self.number)
            yield take(self.batch, begin, end), (end - begin) / self.number

    def reversed(self) -> "Rows":
        """The same rows, the last one first."""
        return Rows(_map(lambda leaf: leaf[::-1], self.batch), self.number, self.size)


def choose_rows(model: Any, batch: Any, most: int = MOST_ROWS) -> Rows:
    """Returns the first rows of a batch, to be cut into three micro-batches, unequal ones.

    Numbers of rows that are also the length of another axis of the model are avoided: then the
    axis of the samples can be told from all others.

    Args:
        model: The model.
        batch: Inputs, targets and weights of a whole batch.
        most: How many rows fit.
    """
    batch = _prefer_numbers(batch, most)
    available = count_rows(batch)
    lengths = _lengths(model, batch)
    numbers = range(min(most, available), max(1, min(FEW_ROWS, most, available) - 1), -1)
    number = next((one for one in numbers if not lengths & _sizes(one)), min(most, available))
    return Rows(to_numpy(take(batch, 0, number)), number, -(-number // 3))


def _prefer_numbers(batch: Any, most: int) -> Any:
    """The first rows without NaN, if there are enough: what is NaN throughout shows nothing."""
    import numpy as np

    first = to_numpy(take(batch, 0, 2 * most))
    has_numbers = np.ones(count_rows(first), bool)
    if not all(isinstance(leaf, np.ndarray) for leaf in leaves(first)):
        return batch
    for leaf in leaves(first):
        if leaf.dtype.kind == "f":
            has_numbers &= np.isfinite(leaf.reshape(len(leaf), -1)).all(axis=1)
    if has_numbers.all() or has_numbers.sum() < min(FEW_ROWS, len(has_numbers) // 2):
        return batch
    return _map(lambda leaf: leaf[has_numbers], first)


def more_rows(batch: Any, few: Rows, most: int) -> Rows:
    """Returns as many times the few rows as are there and allowed, cut in three as well."""
    number = min(count_rows(batch), most) // few.number * few.number
    if number <= few.number:
        return few
    return Rows(to_numpy(take(batch, 0, number)), number, -(-number // 3))


def count_rows(batch: Any) -> int:
    """Returns how many rows a batch has."""
    return int(leaves(batch)[0].shape[0])


def take(batch: Any, begin: int, end: int) -> Any:
    """Returns some rows of a batch."""
    return _map(lambda leaf: (leaf.iloc if hasattr(leaf, "iloc") else leaf)[begin:end], batch)


def leaves(batch: Any) -> list[Any]:
    """Returns the arrays of a batch."""
    import keras

    return [leaf for leaf in keras.tree.flatten(batch) if leaf is not None]


def to_tensors(batch: Any) -> Any:
    """Returns the batch as tensors of the backend."""
    from keras import ops

    return _map(ops.convert_to_tensor, batch)


def to_numpy(batch: Any) -> Any:
    """Returns the batch as NumPy arrays; what has no numbers, such as text, stays as it is."""
    from keras import ops

    def convert(leaf: Any) -> Any:
        if "string" in str(leaf.dtype):
            return leaf
        return ops.convert_to_numpy(leaf)

    return _map(convert, batch)


def _map(function: Any, batch: Any) -> Any:
    import keras

    return keras.tree.map_structure(
        lambda leaf: None if leaf is None else function(leaf), batch, none_is_leaf=False
    )


def _sizes(number: int) -> set[int]:
    size = -(-number // 3)
    return {number, size, number % size or size}


def _lengths(model: Any, batch: Any) -> set[int]:
    """The lengths of axes that have no samples."""
    shapes = [one.shape for one in model.variables]
    shapes += [leaf.shape[1:] for leaf in leaves(batch)]
    return {length for shape in shapes for length in shape}
