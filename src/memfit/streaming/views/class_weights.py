"""Weights of samples by the class of their labels, as `class_weight` of `fit` gives them."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from memfit.errors import UsageError
from memfit.streaming.data.layout import Layout
from memfit.streaming.data.rows import PARTS
from memfit.streaming.data.source import (
    Array,
    ChangesByEpoch,
    Column,
    Ranges,
    Source,
    Values,
    read_into,
)
from memfit.streaming.views.sequence_lengths import HasLengths
from memfit.streaming.views.subset import split_rows

_WEIGHT = PARTS[2]
_DTYPE = np.dtype(np.float32)


@dataclass(frozen=True, slots=True)
class WeightTable:
    """The weight of each class.

    Attributes:
        classes: Labels, ascending.
        weights: The weight of each; labels that are not named weigh 1.
    """

    classes: Array
    weights: Array

    def look_up(self, labels: Any) -> Array:
        """Returns the weights of rows with these labels."""
        if labels.ndim > 1:  # as Keras does: one number, or one for each class
            labels = labels.argmax(axis=-1) if labels.shape[-1] > 1 else labels[..., 0]
        at = np.searchsorted(self.classes, labels).clip(max=len(self.classes) - 1)
        return np.where(self.classes[at] == labels, self.weights[at], _DTYPE.type(1))


class RowsWithWeights:
    """A source with one more column: the weight that follows from the label.

    Args:
        source: All other columns.
        label: The column of labels.
        weight: The column of weights; if the source has it, those are multiplied with these.
        table: The weight of each class; `None` for 1.
    """

    def __init__(self, source: Source, label: str, weight: str, table: WeightTable | None) -> None:
        self._source = source
        self._label = label
        self._weight = weight
        self._own = next((one for one in source.schema if one.name == weight), None)
        self._table = table
        kept = tuple(one for one in source.schema if one.name != weight)
        self.schema = (*kept, Column(weight, _DTYPE))
        self.num_rows = source.num_rows
        self.groups = source.groups
        self.is_shuffled = source.is_shuffled
        self.scratch_bytes = source.scratch_bytes
        self.lengths = source.lengths if isinstance(source, HasLengths) else None
        self.fingerprint = source.fingerprint
        self.check = source.check

    def read(self, start: int, stop: int) -> dict[str, Values]:
        """Returns rows with their weights."""
        found = dict(self._source.read(start, stop))
        found[self._weight] = self._weigh(found[self._label], found.get(self._weight))
        return found

    def read_into(self, ranges: Ranges, into: Mapping[str, Array]) -> None:
        """Reads rows with their weights into arrays."""
        name = self._weight
        num_rows = sum(stop - start for start, stop in ranges)
        inner = {key: one for key, one in into.items() if key != name}
        own = None
        if self._own is not None:
            own = inner[name] = np.empty((num_rows, *self._own.shape), self._own.dtype)
        read_into(self._source, ranges, inner)
        into[name][:num_rows] = self._weigh(into[self._label][:num_rows], own)

    def in_epoch(self, seed: int, epoch: int) -> "RowsWithWeights":
        """Returns the rows of an epoch."""
        if not isinstance(self._source, ChangesByEpoch):
            return self
        rows = self._source.in_epoch(seed, epoch)
        return RowsWithWeights(rows, self._label, self._weight, self._table)

    def split(self, share: float) -> tuple[Source, Source]:
        """Returns two sides; as in `fit`, classes weigh nothing in the second, for validation."""
        first, second = split_rows(self._source, share)
        return (
            RowsWithWeights(first, self._label, self._weight, self._table),
            RowsWithWeights(second, self._label, self._weight, None),
        )

    def _weigh(self, labels: Any, own: Any) -> Array:
        weights = (
            np.ones(len(labels), _DTYPE) if self._table is None else self._table.look_up(labels)
        )
        return weights if own is None else (weights * own.reshape(len(weights))).astype(_DTYPE)


def weigh_classes(
    source: Source, layout: Layout, class_weight: Mapping[Any, float]
) -> tuple[Source, Layout]:
    """Returns a source with a weight for each row, and where that goes.

    Raises:
        UsageError: The weights are none, or the data has no single column of labels.
    """
    table = make_table(class_weight, "class_weight")
    label = find_label(source, layout, "class_weight")
    own = layout.parts[2] if len(layout.parts) > 2 else None
    names = {one.name for one in source.schema}
    if own is not None and own not in names:
        raise UsageError(f"class_weight needs weights in one column. Received: {own}.")
    # A feature may be called so already.
    free = (_WEIGHT + "_" * number for number in itertools.count())
    weight = own or next(one for one in free if one not in names)
    return RowsWithWeights(source, label, weight, table), Layout((*layout.parts[:2], weight))


def make_table(weights: object, argument: str) -> WeightTable:
    """Returns the weights by class that a user gave.

    Raises:
        UsageError: They are none.
    """
    if not isinstance(weights, Mapping) or not weights:
        _refuse(weights, argument, "a dict of weights by label")
    classes = sorted(weights)
    found = [weights[one] for one in classes]
    if not all(isinstance(one, int | float) and 0 <= one < math.inf for one in found):
        _refuse(weights, argument, "weights of 0 or more")
    return WeightTable(np.array(classes), np.array(found, _DTYPE))


def find_label(source: Source, layout: Layout, argument: str) -> str:
    """Returns the column of labels.

    Raises:
        UsageError: There is none, or there are several.
    """
    label = layout.parts[1] if len(layout.parts) > 1 else None
    column = next((one for one in source.schema if one.name == label), None)
    if column is None or column.is_ragged or len(column.shape) > 1:
        raise UsageError(
            f"{argument} needs one column of labels. Received: "
            f"{'no labels' if label is None else f'labels {label}'}. Give (features, labels), or "
            "label= with the name of a column."
        )
    return column.name


def _refuse(received: object, argument: str, expected: str) -> NoReturn:
    raise UsageError(
        f"{argument} must be {expected}. Received: {received!r}. "
        f"Give it like this: {argument}={{0: 1.0, 1: 5.0}}."
    )
