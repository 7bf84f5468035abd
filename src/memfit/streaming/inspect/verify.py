"""Whether data is intact: checksums of what `memfit.ingest` wrote, every row of anything else."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from memfit.errors import DataError
from memfit.messages import Advance, show_progress
from memfit.streaming.data.ragged import Ragged
from memfit.streaming.data.source import Source, row_bytes
from memfit.streaming.store.format import check_part, read_manifest

# Rows that are read in one go, where a source leaves the choice.
_CHUNK_BYTES = 8_000_000
_MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Verification:
    """What a check found.

    Attributes:
        num_rows: Rows of the data; `None` if it could not be opened.
        problems: What is wrong, the first of them.
        not_numbers: How many values of a column are NaN, for those that have some.
        checksums: How many checksums were compared; `None` if there are none.
    """

    num_rows: int | None
    problems: tuple[str, ...]
    not_numbers: tuple[tuple[str, int], ...] = ()
    checksums: int | None = None


def check_store(folder: Path) -> Verification:
    """Compares all files of a folder that `memfit.ingest` wrote with their checksums."""
    manifest = read_manifest(folder)
    problems = []
    with show_progress(sum(one.stop - one.start for one in manifest.checksums), "checking") as tell:
        for part in manifest.checksums:
            try:
                check_part(folder, part)
            except DataError as error:
                problems.append(str(error))
            tell(part.stop - part.start)
    found = tuple(problems[:_MOST_PROBLEMS])
    return Verification(manifest.num_rows, found, checksums=len(manifest.checksums))


def check_source(source: Source) -> Verification:
    """Reads every row once. What cannot be read is passed over, to find what else there is."""
    not_numbers = {one.name: 0 for one in source.schema}
    with show_progress(source.num_rows, "checking") as tell:
        found = _read_all(source, not_numbers, tell)
        problems = tuple(itertools.islice(found, _MOST_PROBLEMS))
    counted = tuple((name, number) for name, number in not_numbers.items() if number)
    return Verification(source.num_rows, problems, counted)


def _read_all(source: Source, not_numbers: dict[str, int], tell: Advance) -> Iterator[str]:
    """Gives what is wrong, each once."""
    seen = set()
    for start, stop in _chunks(source):
        try:
            for name, values in source.read(start, stop).items():
                array = values.values if isinstance(values, Ragged) else values
                if array.dtype.kind in "fc":
                    not_numbers[name] += int(np.count_nonzero(np.isnan(array)))
        except (DataError, OSError) as error:
            if str(error) not in seen:
                seen.add(str(error))
                yield str(error)
        tell(stop - start)
    try:
        source.check()
    except DataError as error:
        yield str(error)


def _chunks(source: Source) -> Iterator[tuple[int, int]]:
    if source.groups is not None:
        edges = source.groups.tolist()
    else:
        chunk_rows = max(1, int(_CHUNK_BYTES / row_bytes(source.schema)))
        edges = [*range(0, source.num_rows, chunk_rows), source.num_rows]
    return itertools.pairwise(edges)
