"""TFRecord files of `tf.train.Example`, read without TensorFlow.

A plain file is read at any record; a compressed one is read once. Columns are found in the first
records: a feature that has as many values in each becomes an array, others become sequences.
"""

import gzip
import itertools
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from memfit.errors import DataError
from memfit.streaming.data.ragged import Ragged
from memfit.streaming.data.reading import join_values
from memfit.streaming.data.source import Column, Schema, Source, Values
from memfit.streaming.files.local import DataFile
from memfit.streaming.sources.crc32c import SCRATCH_BYTES
from memfit.streaming.sources.example import BYTES, FLOAT, Alike, BadExampleError, group_alike
from memfit.streaming.sources.framing import (
    PIECE_BYTES,
    Frames,
    make_index,
    read_all,
    read_frames,
)
from memfit.streaming.store.spool import make_key, spool

# Records that tell which columns there are.
_FIRST_RECORDS = 256


class TFRecord:
    """The records of a file that is not compressed.

    Args:
        path: The file.
        columns: The features to read; all of them if `None`.

    Raises:
        DataError: It is cut or damaged, or holds what is no number.
    """

    groups = None
    is_shuffled = False

    def __init__(self, path: Path, columns: Sequence[str] | None = None) -> None:
        self._file = DataFile(path)
        self._index = make_index(self._file)
        self.num_rows = self._index.num_records
        # What is read, the records of one length, and those of them that are laid out alike.
        piece_bytes = max(self._index.largest_bytes, min(PIECE_BYTES, self._file.size_bytes))
        self.scratch_bytes = 3 * piece_bytes + SCRATCH_BYTES
        self._is_all = columns is None
        self.schema = find_schema(self._frames(0, min(_FIRST_RECORDS, self.num_rows)), columns)

    def fingerprint(self) -> str:
        """Returns a text made of the size and samples of the file."""
        return self._file.sample()[:16].hex()

    def check(self) -> None:
        """Raises if the file was changed."""
        self._file.check()

    def close(self) -> None:
        """Lets go of the open file; the next read opens it again."""
        self._file.close()

    def read(self, start: int, stop: int) -> dict[str, Values]:
        """Returns rows."""
        frames = self._frames(start, stop)
        parts = [decode(one, self.schema, is_all=self._is_all) for one in frames]
        if not parts:
            return {one.name: _join([], one) for one in self.schema}
        return {one.name: _join([part[one.name] for part in parts], one) for one in self.schema}

    def _frames(self, start: int, stop: int) -> Iterator[Frames]:
        return read_frames(self._file, self._index, start, stop)


def open_file(path: Path, columns: Sequence[str] | None = None) -> Source:
    """Returns the rows of a file."""
    if path.suffix.lower() != ".gz":
        return TFRecord(path, columns)
    file = DataFile(path)
    key = make_key([file], "tfrecord", None if columns is None else tuple(columns))
    return spool(_read_once(path, columns), key, name=path.name, check=file.check)


def _read_once(path: Path, columns: Sequence[str] | None) -> Iterator[Mapping[str, Values]]:
    try:
        with gzip.open(path) as stream:
            frames = read_all(stream, str(path))
            first = list(_take(frames, _FIRST_RECORDS))
            schema = find_schema(first, columns)
            for one in itertools.chain(first, frames):
                yield decode(one, schema, is_all=columns is None)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} cannot be decompressed: {error}. It may be cut: write or copy it again."
        ) from error


def _take(frames: Iterator[Frames], number: int) -> Iterator[Frames]:
    while number > 0:
        one = next(frames, None)
        if one is None:
            return
        number -= len(one.starts)
        yield one


def find_schema(frames: Iterable[Frames], columns: Sequence[str] | None = None) -> Schema:
    """Returns the columns of records: those asked for, or all.

    Raises:
        DataError: A feature holds bytes, or numbers of several types, or is not there.
    """
    others: set[str] = set()
    counts: dict[str, list[int]] = {}
    kinds: dict[str, str] = {}
    num_records = 0
    name = ""
    for one in frames:
        num_records += len(one.starts)
        name = one.name
        for alike in _group(one):
            for feature, span in alike.spans.items():
                if columns is not None and feature not in columns:
                    others.add(feature)
                    continue
                if span.kind == BYTES:
                    _refuse_bytes(one, alike, feature)
                if kinds.setdefault(feature, span.kind) != span.kind:
                    _refuse_kind(one, alike, feature, kinds[feature])
                number = _count(alike, feature)
                counts.setdefault(feature, []).extend([number] * len(alike.rows))
    missing = [one for one in columns or () if one not in counts]
    if missing:
        raise DataError(
            f"There is no column {missing[0]!r} in the first records of {name}. Found: "
            f"{', '.join(sorted({*counts, *others}))}."
        )
    if not counts:
        raise DataError(f"{name} has no features: its first records are empty. Leave it out.")
    return tuple(
        _make_column(feature, kinds[feature], counts[feature], num_records)
        for feature in columns or sorted(counts)
    )


def decode(frames: Frames, schema: Schema, *, is_all: bool) -> dict[str, Values]:
    """Returns the values of every column of some records.

    Args:
        frames: The records.
        schema: The columns.
        is_all: Whether these are all features there are.

    Raises:
        DataError: A record is damaged or does not have these columns.
    """
    found = list(_group(frames))
    for alike in found:
        if is_all:
            _check_names(frames, alike, schema)
        _check_kinds(frames, alike, schema)
    num_rows = len(frames.starts)
    values: dict[str, Values] = {}
    for column in schema:
        if column.is_ragged:
            values[column.name] = _decode_ragged(column, found, num_rows)
        else:
            array = np.empty((num_rows, *column.shape), column.dtype)
            for alike in found:
                array[alike.rows] = alike.take(column.name).reshape(-1, *column.shape)
            values[column.name] = array
    return values


def _decode_ragged(column: Column, found: list[Alike], num_rows: int) -> Ragged:
    lengths = np.zeros(num_rows, np.int64)
    for alike in found:
        lengths[alike.rows] = _count(alike, column.name)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    steps = np.empty(offsets[-1], column.dtype)
    for alike in found:
        if _count(alike, column.name):
            taken = alike.take(column.name)
            steps[offsets[alike.rows][:, None] + np.arange(taken.shape[1])] = taken
    return Ragged(steps, offsets)


def _group(frames: Frames) -> Iterator[Alike]:
    """The records by how they are laid out; their rows are numbered as in `frames`."""
    for length in np.unique(frames.lengths):
        rows = np.flatnonzero(frames.lengths == length)
        try:
            for one in group_alike(frames.take(rows)):
                yield Alike(rows[one.rows], one.spans, one.records)
        except BadExampleError as error:
            frames.refuse(int(rows[error.row]), f"is no tf.train.Example: {error}")


def _check_names(frames: Frames, alike: Alike, schema: Schema) -> None:
    names = {one.name for one in schema}
    for feature in alike.spans:
        if feature not in names:
            _refuse(frames, alike, f"has a feature {feature!r} that the first records have not")


def _check_kinds(frames: Frames, alike: Alike, schema: Schema) -> None:
    for column in schema:
        span = alike.spans.get(column.name)
        kind = FLOAT if column.dtype.kind == "f" else "int"
        if span is not None and span.kind != kind:
            _refuse_kind(frames, alike, column.name, kind)
        expected, found = int(np.prod(column.shape)), _count(alike, column.name)
        if not column.is_ragged and found != expected:
            _refuse(
                frames,
                alike,
                f"has {found} values of feature {column.name!r}; the first records have {expected}",
            )


def _refuse(frames: Frames, alike: Alike, reason: str) -> None:
    raise DataError(
        f"Record {frames.first + int(alike.rows[0]) + 1} of {frames.name} {reason}. Expected the "
        "same features in every record. Leave it out, or write it again."
    )


def _refuse_kind(frames: Frames, alike: Alike, feature: str, expected: str) -> None:
    kind = alike.spans[feature].kind.removesuffix("s")
    _refuse(frames, alike, f"has {kind}s in feature {feature!r}; records before have {expected}s")


def _refuse_bytes(frames: Frames, alike: Alike, feature: str) -> None:
    raise DataError(
        f"Feature {feature!r} of {frames.name} (record {frames.first + int(alike.rows[0]) + 1}) "
        "holds bytes, and what they mean is not known. Expected numbers: write what they decode "
        "to as a float_list or an int64_list, or leave it out: name the others in columns=[...]. "
        "Pictures can be streamed from an image folder."
    )


def _count(alike: Alike, feature: str) -> int:
    """How many values each of these records has."""
    span = alike.spans.get(feature)
    if span is None:
        return 0
    if span.kind == FLOAT:
        return len(span.at) // 4
    return int((alike.records[0, span.at] < 0x80).sum())


def _make_column(name: str, kind: str, counts: list[int], num_records: int) -> Column:
    dtype = np.dtype(np.float32 if kind == FLOAT else np.int64)
    if len(set(counts)) == 1 and len(counts) == num_records and counts[0] > 0:
        return Column(name, dtype, () if counts[0] == 1 else (counts[0],))
    return Column(name, dtype, (), sum(counts) / num_records)


def _join(parts: list[Values], column: Column) -> Values:
    if parts:
        return join_values(parts)
    empty = np.empty((0, *column.shape), column.dtype)
    return Ragged(empty, np.zeros(1, np.int64)) if column.is_ragged else empty
