"""One column while its rows are put in a random order."""

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memfit.streaming.data.ragged import Ragged
from memfit.streaming.data.source import Column, Values
from memfit.streaming.ingest.region_file import Counts, RegionFile
from memfit.streaming.store.format import Checksum, file_names

_OFFSET = np.dtype(np.int64)


class PartitionedColumn:
    """The values of a column, or the steps of sequences and their lengths.

    Args:
        index: Which column it is.
        column: What it holds.
        folder: Where its files are; what is in them already is kept.
        rows: How many rows go to each region.
        steps: How many steps of each column of sequences do.
    """

    def __init__(
        self, index: int, column: Column, folder: Path, rows: Counts, steps: Mapping[str, Counts]
    ) -> None:
        self.name = column.name
        paths = [folder / name for name in file_names(index, column)]
        sizes = steps[column.name] if column.is_ragged else rows
        self._values = RegionFile(paths[0], column.dtype, column.shape, sizes)
        self._lengths: RegionFile | None = None
        self.final = column
        if column.is_ragged:
            # In the end, where each sequence begins; a last place says where the last one ends.
            self._lengths = RegionFile(paths[1], _OFFSET, (), rows, more=1)
            mean_length = self._values.total / self._lengths.total
            self.final = dataclasses.replace(column, mean_length=mean_length)

    @property
    def files(self) -> list[RegionFile]:
        """Its files, the lengths before the steps."""
        return [one for one in (self._lengths, self._values) if one is not None]

    def add(self, values: Values, by_region: npt.NDArray[np.intp], counts: Counts) -> None:
        """Writes the rows of a chunk into their regions."""
        if self._lengths is not None and isinstance(values, Ragged):
            taken = values.take(by_region)
            self._lengths.add(taken.lengths, counts)
            self._values.add(taken.values, _count_steps(taken.lengths, counts))
        elif not isinstance(values, Ragged):
            self._values.add(values[by_region], counts)

    def read_added(self, counts: Counts) -> None:
        """Reads the rows of a chunk that an earlier process has written into their regions."""
        if self._lengths is not None:
            counts = _count_steps(self._lengths.read_added(counts), counts)
        self._values.read_added(counts)

    def settle(self, region: int, order: npt.NDArray[np.intp]) -> Iterator[Checksum]:
        """Writes the rows of a region in their order; gives checksums of what is written."""
        values = self._values.read(region)
        if self._lengths is None:
            yield self._values.put(region, values[order])
            return
        lengths = self._lengths.read(region)
        taken = Ragged(values, np.concatenate(([0], np.cumsum(lengths)))).take(order)
        first, _ = self._values.find(region)
        yield self._values.put(region, taken.values)
        is_last = self._lengths.find(region)[1] == self._lengths.total
        yield self._lengths.put(region, first + taken.offsets[: None if is_last else -1])


def _count_steps(lengths: Counts, counts: Counts) -> Counts:
    """How many steps go to each region, of sequences that are in the order of the regions."""
    ends = np.concatenate(([0], np.cumsum(lengths)))[np.cumsum(counts)]
    return np.diff(ends, prepend=0)
