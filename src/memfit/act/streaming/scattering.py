"""Rows in a random order on disk, in two passes and little memory; every order is as likely.

First each row goes to a region of the files that is drawn for it; then the rows of each region,
which fits into memory, are permuted where they are. So the files take no more room than the rows.
The regions are drawn twice from the same seed: the first time to know how large they get.
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memfit.act.streaming.column_file import ColumnFile
from memfit.act.streaming.ragged import Ragged
from memfit.act.streaming.source import Array, Column, Source, Values, row_bytes
from memfit.act.streaming.sources.store import Checksum, Manifest, file_names
from memfit.errors import BudgetError
from memfit.plan.order import equal_edges
from memfit.units import format_size

# Shares of the budget; of rows that are read and of a region there is a copy in the new order.
_CHUNK_SHARE = 0.2
_REGION_SHARE = 0.3
# What a row takes besides its values: its region, and its place.
_PLACE_BYTES = 16
# Streams of random numbers.
_REGIONS, _ROWS = 0, 1
_OFFSET = np.dtype(np.int64)

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Scattering:
    """How rows are read, and to which regions they go.

    Attributes:
        source: Where rows come from.
        chunks: Edges of the rows that are read together.
        num_regions: How many regions there are.
        seed: What the order is made from.
    """

    source: Source
    chunks: Counts
    num_regions: int
    seed: int

    def draw_regions(self, chunk: int) -> npt.NDArray[np.int64]:
        """Returns the region of each row of a chunk; the same whenever it is asked for."""
        num_rows = int(self.chunks[chunk + 1] - self.chunks[chunk])
        return self._randomness(_REGIONS, chunk).integers(self.num_regions, size=num_rows)

    def draw_order(self, region: int, num_rows: int) -> npt.NDArray[np.intp]:
        """Returns the order of the rows of a region."""
        return self._randomness(_ROWS, region).permutation(num_rows)

    def read(self) -> Iterator[tuple[int, Mapping[str, Values]]]:
        """Gives each chunk with its rows."""
        for chunk, (start, stop) in enumerate(zip(self.chunks, self.chunks[1:], strict=False)):
            yield chunk, self.source.read(int(start), int(stop))

    def _randomness(self, stream: int, number: int) -> np.random.Generator:
        return np.random.Generator(
            np.random.Philox(np.random.SeedSequence([self.seed, stream, number]))
        )


def plan_scattering(source: Source, budget_bytes: int, seed: int) -> Scattering:
    """Returns a scattering that takes no more memory than the budget.

    Raises:
        BudgetError: A row group and its copy do not fit.
    """
    size = row_bytes(source.schema) + _PLACE_BYTES
    chunk_rows = max(1, int(_CHUNK_SHARE * budget_bytes / size))
    num_regions = math.ceil(source.num_rows * size / (_REGION_SHARE * budget_bytes))
    if source.groups is None:
        return Scattering(source, equal_edges(source.num_rows, chunk_rows), num_regions, seed)
    largest = int(np.diff(source.groups).max())
    least_bytes = 2 * largest * size + source.scratch_bytes
    if least_bytes > budget_bytes:
        raise BudgetError(
            f"The budget is too small for this data. Received: {format_size(budget_bytes)}. The "
            f"least that would do is {format_size(least_bytes)}: the largest row group has "
            f"{largest} rows, {format_size(largest * size)}, and is there twice."
        )
    return Scattering(source, source.groups, num_regions, seed)


def scatter(
    scattering: Scattering, folder: Path, tell: Callable[[int], None] = lambda _: None
) -> Manifest:
    """Writes the rows of a source into a folder, in a random order.

    Args:
        scattering: Which row goes where.
        folder: Where the files go.
        tell: Called with the number of rows that were read, or permuted, since the last call.
    """
    rows, steps = _count(scattering)
    columns = [
        _Scattered(column, [folder / name for name in file_names(at, column)], rows, steps)
        for at, column in enumerate(scattering.source.schema)
    ]
    checksums: list[Checksum] = []
    with contextlib.ExitStack() as stack:
        for column in columns:
            stack.callback(column.close)
        for chunk, values in scattering.read():
            regions = scattering.draw_regions(chunk)
            by_region = np.argsort(regions, kind="stable")
            for column in columns:
                column.add(values[column.name], by_region, _counts(scattering, regions))
            tell(len(regions))
        for region, num_rows in enumerate(rows.tolist()):
            order = scattering.draw_order(region, num_rows)
            checksums += [one for column in columns for one in column.settle(region, order)]
            tell(num_rows)
    schema = tuple(column.final for column in columns)
    return Manifest(scattering.source.num_rows, True, schema, tuple(checksums))


class _Scattered:
    """One column while it is written: its values, or the steps of sequences and their lengths."""

    def __init__(
        self, column: Column, paths: Sequence[Path], rows: Counts, steps: Mapping[str, Counts]
    ) -> None:
        self.name = column.name
        self._rows = _Regions(rows)
        self._steps = _Regions(steps[self.name]) if column.is_ragged else self._rows
        self._values = ColumnFile(paths[0], column.dtype, (self._steps.total, *column.shape))
        self._offsets: ColumnFile | None = None
        self.final = column
        if column.is_ragged:
            # Lengths at first; a last place says where the last sequence ends.
            self._offsets = ColumnFile(paths[1], _OFFSET, (self._rows.total + 1,))
            mean_length = self._steps.total / self._rows.total
            self.final = dataclasses.replace(column, mean_length=mean_length)

    def add(self, values: Values, by_region: npt.NDArray[np.intp], counts: Counts) -> None:
        """Writes the rows of a chunk into their regions."""
        if isinstance(values, Ragged):
            taken = values.take(by_region)
            ends = taken.offsets[np.cumsum(counts)]
            self._rows.write_next(self._lengths_file, taken.lengths, counts)
            self._steps.write_next(self._values, taken.values, np.diff(ends, prepend=0))
        else:
            self._rows.write_next(self._values, values[by_region], counts)

    def settle(self, region: int, order: npt.NDArray[np.intp]) -> Iterator[Checksum]:
        """Permutes the rows of a region where they are; gives checksums of what is written."""
        start, stop = self._rows.find(region)
        first, last = self._steps.find(region)
        values = self._values.read(first, last)
        if self._offsets is None:
            yield self._values.write(first, values[order])
            return
        lengths = self._offsets.read(start, stop)
        taken = Ragged(values, np.concatenate(([0], np.cumsum(lengths)))).take(order)
        yield self._values.write(first, taken.values)
        is_last = stop == self._rows.total
        yield self._offsets.write(start, first + taken.offsets[: None if is_last else -1])

    def close(self) -> None:
        """Closes its files; what was written is on the disk then."""
        for file in (self._values, self._offsets):
            if file is not None:
                file.close()

    @property
    def _lengths_file(self) -> ColumnFile:
        assert self._offsets is not None  # noqa: S101  # sequences have both files
        return self._offsets


class _Regions:
    """Parts of a file that are filled one row after another.

    Args:
        sizes: Rows of each part.
    """

    def __init__(self, sizes: Counts) -> None:
        self._edges = np.concatenate(([0], np.cumsum(sizes)))
        self._next = self._edges[:-1].copy()

    @property
    def total(self) -> int:
        """Rows of all parts."""
        return int(self._edges[-1])

    def find(self, region: int) -> tuple[int, int]:
        """Returns where a part begins and ends."""
        return int(self._edges[region]), int(self._edges[region + 1])

    def write_next(self, file: ColumnFile, rows: Array, counts: Counts) -> None:
        """Writes the first `counts[0]` rows to the first part, and so on."""
        at = 0
        for region in np.flatnonzero(counts).tolist():
            stop = at + int(counts[region])
            file.write(int(self._next[region]), rows[at:stop])
            at = stop
        self._next += counts


def _count(scattering: Scattering) -> tuple[Counts, dict[str, Counts]]:
    """How many rows each region gets, and how many steps of each column of sequences."""
    rows = np.zeros(scattering.num_regions, np.int64)
    ragged = [one.name for one in scattering.source.schema if one.is_ragged]
    steps = {name: np.zeros_like(rows) for name in ragged}
    if ragged:  # how long sequences are is known when they were read
        for chunk, values in scattering.read():
            regions = scattering.draw_regions(chunk)
            rows += _counts(scattering, regions)
            for name in ragged:
                np.add.at(steps[name], regions, _lengths(values[name]))
        return rows, steps
    for chunk in range(len(scattering.chunks) - 1):
        rows += _counts(scattering, scattering.draw_regions(chunk))
    return rows, steps


def _counts(scattering: Scattering, regions: npt.NDArray[np.int64]) -> Counts:
    return np.bincount(regions, minlength=scattering.num_regions)


def _lengths(values: Values) -> Counts:
    assert isinstance(values, Ragged)  # noqa: S101  # the schema says so
    return values.lengths
