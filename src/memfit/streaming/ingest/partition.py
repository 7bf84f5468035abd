"""Which row goes where when rows are put in a random order; every order is as likely.

Each row goes to a region of the files that is drawn for it; then the rows of each region, which
fits into memory, are permuted. The regions are drawn twice from the same seed: the first time to
know how large they get.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memfit.errors import BudgetError
from memfit.streaming.data.ragged import Ragged
from memfit.streaming.data.source import Source, Values, row_bytes
from memfit.streaming.ingest.region_file import Counts
from memfit.streaming.order.epoch import equal_edges
from memfit.units import format_size

# Shares of the budget; of rows that are read and of a region there is a copy in the new order.
_CHUNK_SHARE = 0.2
_REGION_SHARE = 0.3
# What a row takes besides its values: its region, and its place.
_PLACE_BYTES = 16
# Streams of random numbers.
_REGIONS, _ROWS = 0, 1
# Another one for another way of drawing: what an older memfit has begun is then not gone on with.
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Partition:
    """How rows are read, and to which regions they go.

    Attributes:
        source: Where rows come from.
        chunks: Edges of the rows that are read together.
        num_regions: How many regions there are.
        seed: Seed of the random order.
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

    def make_key(self) -> str:
        """Returns a text that is another one for other rows, and for another order of them."""
        source = self.source
        parts = (_VERSION, source.fingerprint(), source.schema, self.num_regions, self.seed)
        return hashlib.sha256(repr(parts).encode() + self.chunks.tobytes()).hexdigest()

    def read(self, first: int = 0) -> Iterator[tuple[int, Mapping[str, Values]]]:
        """Gives each chunk with its rows, from the first that is wanted."""
        for chunk in range(first, self.num_chunks):
            yield chunk, self.source.read(int(self.chunks[chunk]), int(self.chunks[chunk + 1]))

    @property
    def num_chunks(self) -> int:
        """How many chunks there are."""
        return len(self.chunks) - 1

    def _randomness(self, stream: int, number: int) -> np.random.Generator:
        return np.random.Generator(
            np.random.Philox(np.random.SeedSequence([self.seed, stream, number]))
        )


def plan_partition(source: Source, budget_bytes: int, seed: int) -> Partition:
    """Returns a partition that takes no more memory than the budget.

    Raises:
        BudgetError: A row group and its copy do not fit.
    """
    size = row_bytes(source.schema) + _PLACE_BYTES
    chunk_rows = max(1, int(_CHUNK_SHARE * budget_bytes / size))
    num_regions = math.ceil(source.num_rows * size / region_bytes(budget_bytes))
    if source.groups is None:
        return Partition(source, equal_edges(source.num_rows, chunk_rows), num_regions, seed)
    largest = int(np.diff(source.groups).max())
    least_bytes = 2 * largest * size + source.scratch_bytes
    if least_bytes > budget_bytes:
        raise BudgetError(
            f"The budget is too small for this data. Received: {format_size(budget_bytes)}. The "
            f"smallest that works is {format_size(least_bytes)}: the largest row group has "
            f"{largest} rows, {format_size(largest * size)}, and is in memory twice."
        )
    return Partition(source, source.groups, num_regions, seed)


def count_rows(partition: Partition) -> Counts:
    """Returns how many rows each region gets."""
    rows = np.zeros(partition.num_regions, np.int64)
    for chunk in range(partition.num_chunks):
        rows += count_each(partition, partition.draw_regions(chunk))
    return rows


def count_steps(partition: Partition) -> dict[str, Counts]:
    """Returns how many steps of each column of sequences a region gets: reads all of them."""
    ragged = [one.name for one in partition.source.schema if one.is_ragged]
    steps = {name: np.zeros(partition.num_regions, np.int64) for name in ragged}
    if ragged:
        for chunk, values in partition.read():
            regions = partition.draw_regions(chunk)
            for name in ragged:
                np.add.at(steps[name], regions, _lengths(values[name]))
    return steps


def count_each(partition: Partition, regions: npt.NDArray[np.int64]) -> Counts:
    """Returns how many of these rows go to each region."""
    return np.bincount(regions, minlength=partition.num_regions)


def region_bytes(budget_bytes: int) -> float:
    """Returns about what a region takes."""
    return _REGION_SHARE * budget_bytes


def _lengths(values: Values) -> Counts:
    assert isinstance(values, Ragged)  # noqa: S101  # the schema says so
    return values.lengths
