"""TFRecord files of `tf.train.Example`, read without TensorFlow.

A record is `length (8 bytes), checksum of the length (4), data, checksum of the data (4)`. Numbers
of a plain file are read at any record. Pictures and text are decoded once, into the cache, and so
is all of a compressed file.
"""

import functools
import gzip
import io
import itertools
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from memfit.errors import DataError
from memfit.streaming.data.reading import join_values
from memfit.streaming.data.source import Source, Values
from memfit.streaming.files.local import DataFile
from memfit.streaming.files.optional_packages import load
from memfit.streaming.sources.pictures import map_in_threads
from memfit.streaming.sources.tf_example import Examples, Record
from memfit.streaming.store.spool import make_key, spool

_HEAD = struct.Struct("<QI")
_TAIL = struct.Struct("<I")
_FRAME_BYTES = _HEAD.size + _TAIL.size
# The place of one small record of so many is kept: of 10 million, 1.3 MB.
_MOST_SKIPPED = 64
# What is read at a time, unless a record is larger; and what is decoded together in threads.
_CHUNK_BYTES = 1 << 16
_SPOOL_BYTES = 1 << 20
_SPOOL_RECORDS = 64
# What is read, its records, their values and the columns of these; whole numbers are packed.
_COPIES = 6
# Records that tell which columns there are.
_FIRST_RECORDS = 256


class TFRecord:
    """The numbers of a file that is not compressed, read at any record.

    Args:
        file: The file.
        index: Where its records are.
        examples: What decodes them.
    """

    groups = None
    is_shuffled = False

    def __init__(self, file: DataFile, index: "Index", examples: Examples) -> None:
        self._file, self._index, self._examples = file, index, examples
        self.num_rows = index.num_records
        chunk_bytes = max(index.largest_bytes, min(_CHUNK_BYTES, file.size_bytes))
        self.scratch_bytes = _COPIES * chunk_bytes
        self.schema = tuple(one.column for one in examples.features)

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
        decode, stack = self._examples.decode, self._examples.stack
        chunks = read_record_chunks(self._file, self._index, start, stop)
        parts = [stack([decode(one) for one in chunk]) for chunk in chunks] or [stack([])]
        return {one.name: join_values([part[one.name] for part in parts]) for one in self.schema}


def open_file(
    path: Path,
    columns: Sequence[str] | None = None,
    image_size: tuple[int, int] | None = None,
) -> Source:
    """Returns the rows of a file.

    Raises:
        DataError: It is cut or damaged, or holds what cannot be streamed.
        MissingPackageError: protobuf or google-crc32c is not installed.
    """
    file = DataFile(path)
    if path.suffix.lower() == ".gz":
        found = _decode_compressed(path, columns, image_size)
    else:
        index = make_index(file)
        first = _read_records(file, index, min(_FIRST_RECORDS, index.num_records))
        examples = Examples(str(path), first, columns, image_size)
        if examples.is_numbers:
            return TFRecord(file, index, examples)
        found = _decode(examples, _read_records(file, index, index.num_records))
    wanted = None if columns is None else tuple(columns)
    size = None if image_size is None else tuple(image_size)
    key = make_key([file], "tfrecord", wanted, size)
    return spool(found, key, name=path.name, check=file.check)


def _decode_compressed(
    path: Path, columns: Sequence[str] | None, image_size: tuple[int, int] | None
) -> Iterator[Mapping[str, Values]]:
    chunks = _in_chunks(_read_compressed(path))
    # Some chunks are enough to tell the columns; of large records, fewer than of small ones.
    head = list(itertools.islice(chunks, _FIRST_RECORDS // _SPOOL_RECORDS))
    first = list(itertools.chain.from_iterable(head))
    examples = Examples(str(path), first, columns, image_size)
    yield from _decode(examples, itertools.chain(first, itertools.chain.from_iterable(chunks)))


def _decode(examples: Examples, records: Iterable[Record]) -> Iterator[Mapping[str, Values]]:
    for rows in map_in_threads(examples.decode, _in_chunks(records)):
        yield examples.stack(rows)


def _read_records(file: DataFile, index: "Index", number: int) -> Iterator[Record]:
    return itertools.chain.from_iterable(read_record_chunks(file, index, 0, number))


def _in_chunks(records: Iterable[Record]) -> Iterator[list[Record]]:
    chunk: list[Record] = []
    size_bytes = 0
    for record in records:
        chunk.append(record)
        size_bytes += len(record[1])
        if len(chunk) == _SPOOL_RECORDS or size_bytes >= _SPOOL_BYTES:
            yield chunk
            chunk, size_bytes = [], 0
    if chunk:
        yield chunk


@dataclass(frozen=True, slots=True)
class Index:
    """Where some of the records of a file are.

    Attributes:
        num_records: How many there are.
        every: The place of one record of so many is known: of all, if they are large.
        marks: These places, and the end.
    """

    num_records: int
    every: int
    marks: npt.NDArray[np.int64]

    @property
    def largest_bytes(self) -> int:
        """The most that lies between two marks."""
        return int(np.diff(self.marks).max())


def make_index(file: DataFile) -> Index:
    """Returns where the records of a file are; only their lengths are looked at.

    Raises:
        DataError: It is truncated or damaged, or is not a TFRecord file.
    """
    name, at, number, every = str(file.path), 0, 0, 1
    marks: list[int] = []
    buffer, begin = b"", 0
    while at < file.size_bytes:
        if number % every == 0:
            marks.append(at)
        if not begin <= at <= begin + len(buffer) - _HEAD.size:
            begin = at
            buffer = _read_bytes(file, begin, min(begin + _CHUNK_BYTES, file.size_bytes))
        at += _read_length(buffer, at - begin, name, number) + _FRAME_BYTES
        if at > file.size_bytes:
            _refuse_cut(name, number)
        if number == 0:
            every = min(max(1, _CHUNK_BYTES // at), _MOST_SKIPPED)
        number += 1
    return Index(number, every, np.array([*marks, at]))


def read_record_chunks(
    file: DataFile, index: Index, start: int, stop: int
) -> Iterator[list[Record]]:
    """Gives the records from `start` to `stop`, some at a time."""
    at, end = start // index.every, -(-stop // index.every)
    while at < end:
        begin = int(index.marks[at])
        # As many marks as fit into a chunk, at least one step.
        fitting = int(np.searchsorted(index.marks, begin + _CHUNK_BYTES, "right")) - 1
        following = min(max(fitting, at + 1), end)
        data = _read_bytes(file, begin, int(index.marks[following]))
        first = at * index.every
        places, _ = _find_records(data, str(file.path), first)
        wanted = slice(max(start - first, 0), stop - first)
        yield _take_records(data, places[wanted], str(file.path), first + (wanted.start or 0))
        at = following


def _read_compressed(path: Path) -> Iterator[Record]:
    try:
        with gzip.open(path) as stream:
            yield from _read_through(stream, str(path))
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} cannot be decompressed: {error}. It may be truncated: write or copy it again."
        ) from error


def _read_through(stream: io.BufferedIOBase, name: str) -> Iterator[Record]:
    rest, number = b"", 0
    while more := stream.read(max(_CHUNK_BYTES, len(rest))):
        data = rest + more
        places, used = _find_records(data, name, number)
        yield from _take_records(data, places, name, number)
        rest = data[used:]
        number += len(places)
    if rest:
        _refuse_cut(name, number)


def _find_records(data: bytes, name: str, number: int) -> tuple[list[tuple[int, int]], int]:
    """Where the complete records of some bytes begin and end, and where what is left begins."""
    places: list[tuple[int, int]] = []
    at = 0
    while at + _HEAD.size <= len(data):
        start = at + _HEAD.size
        stop = start + _read_length(data, at, name, number + len(places))
        if stop + _TAIL.size > len(data):
            break
        places.append((start, stop))
        at = stop + _TAIL.size
    return places, at


def _take_records(
    data: bytes, places: Sequence[tuple[int, int]], name: str, number: int
) -> list[Record]:
    """The contents of records, whose checksums are right."""
    found = [(at, data[start:stop]) for at, (start, stop) in enumerate(places, number)]
    for (at, record), (_, stop) in zip(found, places, strict=True):
        if _checksum(record) != _TAIL.unpack_from(data, stop)[0]:
            _refuse(name, at, "is damaged: the checksum of its data is wrong")
    return found


def _read_length(data: bytes, at: int, name: str, number: int) -> int:
    if at + _HEAD.size > len(data):
        _refuse_cut(name, number)
    length, checksum = _HEAD.unpack_from(data, at)
    if checksum != _checksum(data[at : at + 8]):
        if number == 0:
            raise DataError(
                f"{name} is not a TFRecord file: the checksum at its beginning is wrong. Expected "
                "what tf.io.TFRecordWriter writes; compressed ones end in .gz."
            )
        _refuse(name, number, "is damaged: the checksum of its length is wrong")
    return int(length)


def _checksum(data: bytes) -> int:
    """The masked CRC-32C of TFRecord files."""
    crc = _load_crc32c().value(data)
    return int(((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


@functools.cache
def _load_crc32c() -> Any:
    return load("google_crc32c", "TFRecord files", "tfrecord", package="google-crc32c")


def _read_bytes(file: DataFile, start: int, stop: int) -> bytes:
    data = bytearray(stop - start)
    file.read_at([(start, len(data))], memoryview(data))
    return bytes(data)


def _refuse(name: str, number: int, reason: str) -> NoReturn:
    raise DataError(f"Record {number + 1} of {name} {reason}. Write or copy the file again.")


def _refuse_cut(name: str, number: int) -> NoReturn:
    _refuse(name, number, "is truncated: the file ends inside it")
