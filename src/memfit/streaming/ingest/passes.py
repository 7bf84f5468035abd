"""The two passes that put rows in a random order on disk, in little memory.

First each chunk of rows goes to its regions, then the rows of each region are put in their order.
What is done is written down, so that a process that was killed can be gone on from by the next.
"""

import contextlib
import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np

from memfit.errors import DataError
from memfit.messages import say
from memfit.streaming.data.source import row_bytes
from memfit.streaming.ingest.column import PartitionedColumn
from memfit.streaming.ingest.journal import IngestProgress, Journal
from memfit.streaming.ingest.partition import Partition, count_each, count_rows, count_steps
from memfit.streaming.ingest.region_file import Counts, RegionFile
from memfit.streaming.store.atomic_folder import clear
from memfit.streaming.store.format import Checksum, Manifest, check_part

JOURNAL = "progress.jsonl"
# What is written between two times that the disk is waited for. A killed process loses no more of
# the first pass. If the machine itself goes down, checksums find what did not reach the disk.
_SYNC_BYTES = 64_000_000


def write_partition(
    partition: Partition, folder: Path, tell: Callable[[int], None] = lambda _: None
) -> Manifest:
    """Writes the rows of a source into a folder, in a random order.

    Args:
        partition: Which row goes where.
        folder: Where the files go; what an earlier try has done there is kept if it is of use.
        tell: Called with the number of rows that were read, or permuted, since the last call.
    """
    journal, key = Journal(folder / JOURNAL), partition.make_key()
    done = journal.read()
    if done.key == key:
        try:
            return _run(partition, folder, journal, done, tell)
        except _DamagedError:
            say(f"the unfinished work in {folder} is damaged: removed it, starting again")
    elif done.key:
        say(
            f"the unfinished work in {folder} belongs to other data, or another seed, budget or "
            "choice of columns: removed it, starting again"
        )
    clear(folder)
    journal.write(key=key)
    return _run(partition, folder, journal, IngestProgress(key), tell)


class _DamagedError(Exception):
    """The unfinished work of an earlier call is not what that call wrote."""


def _run(
    partition: Partition,
    folder: Path,
    journal: Journal,
    done: IngestProgress,
    tell: Callable[[int], None],
) -> Manifest:
    rows = count_rows(partition)
    steps = {name: np.array(one, np.int64) for name, one in done.steps.items()}
    if not steps:
        steps = count_steps(partition)
        journal.write(steps={name: one.tolist() for name, one in steps.items()})
    with contextlib.ExitStack() as stack:
        columns = []
        for at, column in enumerate(partition.source.schema):
            columns.append(PartitionedColumn(at, column, folder, rows, steps))
            for file in columns[-1].files:
                stack.callback(file.close)
        passes = _Passes(partition, columns, journal, rows)
        num_done = passes.check(done, folder)
        if num_done:
            say(f"resuming an interrupted ingest, {num_done / (2 * rows.sum()):.0%} done")
            tell(num_done)
        passes.fill(done, tell)
        checksums = passes.settle(done, tell)
        for file in passes.files:
            file.finish()
    schema = tuple(column.final for column in columns)
    return Manifest(partition.source.num_rows, True, schema, tuple(checksums))


class _Passes:
    """Both passes over the columns.

    Args:
        partition: Which row goes where.
        columns: What the rows go to.
        journal: Where to write down what is done.
        rows: How many rows go to each region.
    """

    def __init__(
        self,
        partition: Partition,
        columns: list[PartitionedColumn],
        journal: Journal,
        rows: Counts,
    ) -> None:
        self._partition = partition
        self._columns = columns
        self._journal = journal
        self._rows = rows
        self._row_bytes = row_bytes(partition.source.schema)
        self.files: list[RegionFile] = [one for column in columns for one in column.files]

    def check(self, done: IngestProgress, folder: Path) -> int:
        """Compares what an earlier try has written with its checksums.

        Returns:
            How many rows it has read and permuted.
        """
        try:
            if done.crcs:
                self._check_regions(done, folder)
            else:
                self._check_chunks(done)
        except (DataError, OSError, ValueError, IndexError) as error:
            raise _DamagedError from error
        settled = self._rows[: len(done.settled)].sum()
        return int(self._partition.chunks[done.num_chunks] + settled)

    def fill(self, done: IngestProgress, tell: Callable[[int], None]) -> None:
        """Writes chunks into their regions."""
        if done.crcs:
            return
        unsynced = 0.0
        for chunk, values in self._partition.read(done.num_chunks):
            regions = self._partition.draw_regions(chunk)
            by_region = np.argsort(regions, kind="stable")
            for column in self._columns:
                column.add(values[column.name], by_region, count_each(self._partition, regions))
            unsynced += len(regions) * self._row_bytes
            if unsynced >= _SYNC_BYTES:
                self._sync()
                self._journal.write(num_chunks=chunk + 1, digests=self._digests())
                self._journal.sync()
                unsynced = 0.0
            tell(len(regions))
        self._sync()
        crcs = [one.crcs for one in self.files]
        self._journal.write(num_chunks=self._partition.num_chunks, crcs=crcs)
        self._journal.sync()

    def settle(self, done: IngestProgress, tell: Callable[[int], None]) -> list[Checksum]:
        """Puts the rows of each region in their order; returns the checksums of all files."""
        checksums = list(itertools.chain.from_iterable(done.settled))
        unsynced = 0.0
        for region in range(len(done.settled), len(self._rows)):
            num_rows = int(self._rows[region])
            order = self._partition.draw_order(region, num_rows)
            found = [one for column in self._columns for one in column.settle(region, order)]
            unsynced += num_rows * self._row_bytes
            is_due = unsynced >= _SYNC_BYTES
            if is_due:
                self._sync()
                unsynced = 0.0
            self._journal.write(settled=[[one.file, one.start, one.stop, one.crc] for one in found])
            if is_due:
                self._journal.sync()
            checksums += found
            tell(num_rows)
        return checksums

    def _check_chunks(self, done: IngestProgress) -> None:
        for chunk in range(done.num_chunks):
            regions = self._partition.draw_regions(chunk)
            for column in self._columns:
                column.read_added(count_each(self._partition, regions))
        if done.num_chunks and self._digests() != done.digests:
            raise _DamagedError

    def _check_regions(self, done: IngestProgress, folder: Path) -> None:
        for file, crcs in zip(self.files, done.crcs, strict=True):
            file.crcs = crcs
        for one in itertools.chain.from_iterable(done.settled):
            check_part(folder, one)
        for region in range(len(done.settled), len(self._rows)):
            if not all(one.is_intact(region) for one in self.files):
                raise _DamagedError

    def _digests(self) -> list[int]:
        return [one.digest for one in self.files]

    def _sync(self) -> None:
        for file in self.files:
            file.sync()
