"""Weights of samples by the class of their labels, as `class_weight` of `fit` gives them."""

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from memfit.act.streaming.layout import PARTS, Layout
from memfit.act.streaming.source import Array, Column, Ranges, Source, Values, read_into
from memfit.errors import UsageError

_WEIGHT = PARTS[2]
_DTYPE = np.dtype(np.float32)


class Weighed:
    """A source with one more column: the weight that follows from the label.

    Args:
        source: All other columns.
        label: The column of labels.
        weight: The column of weights; if the source has it, those are multiplied with these.
        table: Classes, ascending, and the weight of each.
    """

    def __init__(self, source: Source, label: str, weight: str, table: tuple[Array, Array]) -> None:
        self._source = source
        self._label = label
        self._weight = weight
        self._own = next((one for one in source.schema if one.name == weight), None)
        self._classes, self._weights = table
        kept = tuple(one for one in source.schema if one.name != weight)
        self.schema = (*kept, Column(weight, _DTYPE))
        self.num_rows = source.num_rows
        self.groups = source.groups
        self.is_shuffled = source.is_shuffled
        self.scratch_bytes = source.scratch_bytes
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

    def _weigh(self, labels: Any, own: Any) -> Array:
        if labels.ndim > 1:  # as Keras does: one number, or one for each class
            labels = labels.argmax(axis=-1) if labels.shape[-1] > 1 else labels[..., 0]
        at = np.searchsorted(self._classes, labels).clip(max=len(self._classes) - 1)
        weights = np.where(self._classes[at] == labels, self._weights[at], _DTYPE.type(1))
        return weights if own is None else (weights * own.reshape(len(weights))).astype(_DTYPE)


def weigh_classes(
    source: Source, layout: Layout, class_weight: Mapping[Any, float]
) -> tuple[Source, Layout]:
    """Returns a source with a weight for each row, and where that goes.

    Raises:
        UsageError: The weights are none, or the data has no single column of labels.
    """
    if not isinstance(class_weight, Mapping) or not class_weight:
        _refuse(class_weight, "a dict of weights by label")
    classes = sorted(class_weight)
    weights = [class_weight[one] for one in classes]
    if not all(isinstance(one, int | float) and 0 <= one < math.inf for one in weights):
        _refuse(class_weight, "weights of 0 or more")
    label = layout.parts[1] if len(layout.parts) > 1 else None
    own = layout.parts[2] if len(layout.parts) > 2 else None
    columns = {one.name: one for one in source.schema}
    if label not in columns or columns[label].is_ragged or len(columns[label].shape) > 1:
        raise UsageError(
            "class_weight needs one column of labels. Received: "
            f"{'no labels' if label is None else f'labels {label}'}. Give (features, labels), or "
            "label= with the name of a column."
        )
    if own is not None and own not in columns:
        raise UsageError(f"class_weight needs weights in one column. Received: {own}.")
    table = (np.array(classes), np.array(weights, _DTYPE))
    weight = own or next(
        name
        for name in (_WEIGHT + "_" * number for number in itertools.count())
        if name not in columns
    )
    return Weighed(source, label, weight, table), Layout((*layout.parts[:2], weight))


def _refuse(received: object, expected: str) -> None:
    raise UsageError(
        f"class_weight must be {expected}. Received: {received!r}. "
        "Give it as for fit: class_weight={0: 1.0, 1: 5.0}."
    )
