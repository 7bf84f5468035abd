"""Rows drawn by weights, again in every epoch: those that weigh more come more often.

An epoch has as many rows as the data. Place `j` of it draws a point between `j` and `j + 1`, and
gets the row into whose part of all weights the point falls. So a row comes as often as its weight
says, rounded up or down at random; equal weights give every row once; and which rows lie between
two places is known without those before them. Of the weights only sums over many rows are kept.
"""

import copy
import hashlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from memfit.errors import UsageError
from memfit.messages import show_progress
from memfit.streaming.data.layout import Layout
from memfit.streaming.data.ragged import Ragged
from memfit.streaming.data.reading import join_values
from memfit.streaming.data.source import (
    Array,
    Ranges,
    Source,
    Values,
    allocate,
    read_into,
    row_bytes,
)
from memfit.streaming.views.class_weights import WeightTable, find_label, make_table
from memfit.streaming.views.subset import RowSubset, split_rows
from memfit.streaming.views.zip import Zip

# Rows whose weights are kept as one sum, unless they are large or very many.
_STRIDE = 16
_MOST_SUMS = 500_000
# Rows that are read in one go while those that were drawn are looked for.
_CHUNK_BYTES = 1_000_000
# Places that are looked up together, and what each takes meanwhile.
_MOST_PLACES = 32_768
_PLACE_BYTES = 80
_DRAWS = 0xD7A3

Weights = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]


class Weigher:
    """What a row weighs.

    Args:
        given: A weight for each row; or the column that has it.
        table: For labels: the weight of each class.
    """

    def __init__(self, given: Array | str, table: WeightTable | None = None) -> None:
        self._given = given
        self._table = table

    def weigh(self, ranges: Ranges, rows: Mapping[str, Values]) -> Weights:
        """Returns the weights of rows that were read from these ranges.

        Raises:
            UsageError: One of them is not a weight.
        """
        if isinstance(self._given, str):
            found: Any = rows[self._given]
        else:
            found = np.concatenate([self._given[start:stop] for start, stop in ranges])
        weights = np.asarray(found if self._table is None else self._table.look_up(found), float)
        weights = weights.reshape(len(weights))
        if not np.isfinite(weights).all() or (weights < 0).any():
            wrong = weights[~np.isfinite(weights) | (weights < 0)][0]
            raise UsageError(
                f"Weights for drawing rows must be numbers, 0 or more. Received: {wrong} among the "
                f"rows from {ranges[0][0]} to {ranges[-1][1]}."
            )
        return weights

    def read_all(self, source: Source, stride: int) -> Iterator[Weights]:
        """Gives the weights of all rows, several strides at a time; reads no more than it must."""
        if isinstance(self._given, str) and isinstance(source, Zip):
            source = source.narrow(self._given)
        num_rows = stride * max(1, int(_CHUNK_BYTES / row_bytes(source.schema) / stride))
        with show_progress(source.num_rows, "weighing rows") as tell:
            for start in range(0, source.num_rows, num_rows):
                stop = min(start + num_rows, source.num_rows)
                read = source.read(start, stop) if isinstance(self._given, str) else {}
                yield self.weigh([(start, stop)], read)
                tell(stop - start)

    def of_part(self, part: RowSubset) -> "Weigher":
        """Returns the same for some of the rows."""
        return self if isinstance(self._given, str) else Weigher(part.take(self._given))


class OversampledRows:
    """Rows of a source, drawn by their weights.

    Args:
        source: All rows; any of them can be read at the cost of its bytes.
        weigher: What they weigh.

    Raises:
        UsageError: No row weighs anything.
    """

    groups = None
    is_shuffled = False  # the copies of a row are neighbours

    def __init__(self, source: Source, weigher: Weigher) -> None:
        self._source = source
        self._weigher = weigher
        self.schema = source.schema
        self.num_rows = source.num_rows
        self.check = source.check
        chunk_rows = max(1, int(_CHUNK_BYTES / row_bytes(self.schema)))
        self._stride = max(min(_STRIDE, chunk_rows), math.ceil(self.num_rows / _MOST_SUMS))
        self._sums = self._add_up()
        self._chunk_strides = max(1, chunk_rows // self._stride)
        chunk_bytes = self._chunk_strides * self._stride * row_bytes(self.schema)
        looking_bytes = min(_MOST_PLACES, self.num_rows) * _PLACE_BYTES + 2 * self._sums.nbytes
        self.scratch_bytes = round(source.scratch_bytes + 2 * chunk_bytes + looking_bytes)
        self._key = _make_key(0, 0)

    def in_epoch(self, seed: int, epoch: int) -> "OversampledRows":
        """Returns the rows of an epoch."""
        drawn = copy.copy(self)
        drawn._key = _make_key(seed, epoch)
        return drawn

    def fingerprint(self) -> str:
        """Returns a text made of that of the rows and of what they weigh."""
        digest = hashlib.sha256(self._source.fingerprint().encode())
        digest.update(self._sums.tobytes())
        return digest.hexdigest()[:32]

    def read(self, start: int, stop: int) -> dict[str, Values]:
        """Returns the rows at these places of the epoch."""
        if start == stop:
            return dict(self._source.read(0, 0))
        found = list(self._find(np.arange(start, stop)))
        return {
            one.name: join_values([_take(rows[one.name], picked) for _, rows, picked in found])
            for one in self.schema
        }

    def read_into(self, ranges: Ranges, into: Mapping[str, Array]) -> None:
        """Reads rows into arrays."""
        at = 0
        for places in _place_some(ranges):
            for where, rows, picked in self._find(places):
                for name, array in into.items():
                    array[at : at + len(places)][where] = _take(rows[name], picked)
            at += len(places)

    def split(self, share: float) -> tuple[Source, Source]:
        """Returns two sides without a row in common; of the second every row comes once."""
        first, second = split_rows(self._source, share)
        assert isinstance(first, RowSubset)  # noqa: S101  # what is drawn from does not split itself
        return OversampledRows(first, self._weigher.of_part(first)), second

    def _add_up(self) -> Weights:
        """Where each stride of rows begins, in places of an epoch; and where the last ends."""
        parts = [
            np.add.reduceat(weights, np.arange(0, len(weights), self._stride))
            for weights in self._weigher.read_all(self._source, self._stride)
        ]
        ends = np.cumsum(np.concatenate(parts))
        if not ends[-1] > 0:
            raise UsageError("Weights for drawing rows must not all be 0. Received: only zeros.")
        self._scale = self.num_rows / ends[-1]
        return np.concatenate(([0.0], ends * self._scale))

    def _find(self, places: Places) -> Iterator[tuple[Places, Mapping[str, Values], Places]]:
        """Reads what was drawn for some places, chunk by chunk, in the order of the source.

        Yields:
            Which of the places; rows; which of these rows belongs to each.
        """
        # The end of all weights is no part of any row, but rounding may lead there.
        points = np.minimum(places + _draw(self._key, places), np.nextafter(self._sums[-1], 0))
        strides = np.searchsorted(self._sums, points, side="right") - 1
        by_stride = np.argsort(strides, kind="stable")
        touched, firsts = np.unique(strides[by_stride], return_index=True)
        firsts = np.append(firsts, len(places))
        for at in range(0, len(touched), self._chunk_strides):
            chunk = touched[at : at + self._chunk_strides]
            where = by_stride[firsts[at] : firsts[at + len(chunk)]]
            rows, ends = self._read_chunk(chunk)
            yield where, rows, np.searchsorted(ends, points[where], side="right")

    def _read_chunk(self, strides: Places) -> tuple[Mapping[str, Values], Weights]:
        """The rows of some strides, and where the part of each ends in all weights."""
        is_first = np.append(True, np.diff(strides) > 1)
        starts = strides[is_first] * self._stride
        stops = (strides[np.append(is_first[1:], True)] + 1) * self._stride
        ranges = list(zip(starts.tolist(), np.minimum(stops, self.num_rows).tolist(), strict=True))
        rows = _read_ranges(self._source, ranges)
        weights = self._weigher.weigh(ranges, rows)
        # Each stride by itself, so that rounding does not depend on what is read with it.
        padded = np.zeros((len(strides), self._stride))
        padded.reshape(-1)[: len(weights)] = weights
        ends = np.cumsum(padded, axis=1)
        begins, finals = self._sums[strides, None], self._sums[strides + 1, None]
        ends = np.where(ends == ends[:, -1:], finals, begins + ends * self._scale)
        return rows, np.minimum(ends, finals).reshape(-1)


def draw_rows(source: Source, layout: Layout, oversample: Any) -> tuple[OversampledRows, Layout]:
    """Returns the rows of a source, drawn by weights, and where their columns go.

    A column that is named for its weights is no longer an input.

    Args:
        source: All rows.
        layout: Which column has the labels.
        oversample: Weights by label, a weight for each row, or the name of a column of weights.

    Raises:
        UsageError: These cannot be weights, or the data can only be read in groups.
    """
    if source.groups is not None:
        raise UsageError(
            "oversample needs data whose rows can be read one by one; this is read in groups. "
            "Write it once with memfit.ingest() and stream that."
        )
    if isinstance(oversample, Mapping):
        table = make_table(oversample, "oversample")
        return OversampledRows(
            source, Weigher(find_label(source, layout, "oversample"), table)
        ), layout
    if isinstance(oversample, str):
        _require_column(source, oversample)
        return OversampledRows(source, Weigher(oversample)), _without(layout, oversample)
    array = np.asarray(oversample)
    if array.dtype.kind not in "fiub" or array.size != source.num_rows:
        raise UsageError(
            "oversample must be weights by label, such as {0: 1, 1: 20}, the name of a column, or "
            f"an array with a number for each of {source.num_rows} rows. Received: "
            f"{type(oversample).__name__} of shape {array.shape}."
        )
    return OversampledRows(source, Weigher(array.reshape(-1))), layout


def _require_column(source: Source, name: str) -> None:
    column = next((one for one in source.schema if one.name == name), None)
    if column is None or column.is_ragged or column.shape or column.dtype.kind not in "fiub":
        names = ", ".join(one.name for one in source.schema)
        raise UsageError(
            f"oversample must name a column of numbers. Received: {name!r}. Columns: {names}."
        )


def _without(layout: Layout, name: str) -> Layout:
    inputs, *others = layout.parts
    if isinstance(inputs, dict) and len(inputs) > 1:
        inputs = {key: one for key, one in inputs.items() if one != name}
    return Layout((inputs, *others))


def _place_some(ranges: Ranges) -> Iterator[Places]:
    """Gives the places of all ranges, not too many at a time."""
    ends = np.cumsum([stop - start for start, stop in ranges])
    shifts = np.array([start for start, _ in ranges]) - np.append(0, ends[:-1])
    for first in range(0, int(ends[-1]), _MOST_PLACES):
        numbers = np.arange(first, min(first + _MOST_PLACES, int(ends[-1])))
        yield numbers + shifts[np.searchsorted(ends, numbers, side="right")]


def _read_ranges(source: Source, ranges: Ranges) -> Mapping[str, Values]:
    if any(one.is_ragged for one in source.schema):
        found = [source.read(start, stop) for start, stop in ranges]
        return {one.name: join_values([each[one.name] for each in found]) for one in source.schema}
    arrays = allocate(source.schema, sum(stop - start for start, stop in ranges))
    read_into(source, ranges, arrays)
    return arrays


def _take(values: Values, rows: Places) -> Any:
    return values.take(rows) if isinstance(values, Ragged) else values[rows]


def _make_key(seed: int, epoch: int) -> np.uint64:
    return np.uint64(np.random.SeedSequence([seed, epoch, _DRAWS]).generate_state(1, np.uint64)[0])


def _draw(key: np.uint64, places: Places) -> Weights:
    """A number from 0 to 1 for each place, whatever the others are: SplitMix64 of both."""
    mixed = key + (places.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
