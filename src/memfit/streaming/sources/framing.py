"""Where the records of a TFRecord file lie: each has its length before it, and checksums.

`length (8 bytes), checksum of the length (4), data, checksum of the data (4)`.
"""

import functools
import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from memfit.errors import DataError
from memfit.streaming.files.local import DataFile
from memfit.streaming.sources.crc32c import masked_crc32c

_HEAD = struct.Struct("<QI")
_TAIL_BYTES = 4
FRAME_BYTES = _HEAD.size + _TAIL_BYTES
# The place of one small record of so many is kept: of 10 million, 1.3 MB.
_MOST_SKIPPED = 64
# What is read, and parsed, at a time, unless a record is larger.
PIECE_BYTES = 1 << 16

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Frames:
    """Some records one after another.

    Attributes:
        name: The file, for messages.
        first: The number of the first of them, in the file.
        data: Bytes that hold them all.
        starts: Where the contents of each begin.
        lengths: How long these are.
    """

    name: str
    first: int
    data: npt.NDArray[np.uint8]
    starts: Places
    lengths: Places

    def take(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.uint8]:
        """Returns the contents of records of one length, whose checksums are right.

        Raises:
            DataError: One is damaged.
        """
        length = int(self.lengths[rows[0]])
        found = self._view(length)[self.starts[rows]]
        tails = self._view(_TAIL_BYTES)[self.starts[rows] + length].copy().view("<u4")[:, 0]
        is_bad = masked_crc32c(found) != tails
        if is_bad.any():
            self.refuse(int(rows[is_bad][0]), "is damaged: the checksum of its data is wrong")
        return found

    def refuse(self, row: int, reason: str) -> NoReturn:
        """Raises `DataError` about a record."""
        refuse(self.name, self.first + row, reason)

    def _view(self, length: int) -> npt.NDArray[np.uint8]:
        if length == 0:
            return np.empty((len(self.data), 0), np.uint8)
        return np.lib.stride_tricks.sliding_window_view(self.data, length)


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
    marks: Places

    @property
    def largest_bytes(self) -> int:
        """The most that lies between two marks."""
        return int(np.diff(self.marks).max())


def refuse(name: str, number: int, reason: str) -> NoReturn:
    """Raises `DataError` about a record; the first has number 0 here, and 1 in the message."""
    raise DataError(f"Record {number + 1} of {name} {reason}. Write or copy the file again.")


def make_index(file: DataFile) -> Index:
    """Returns where the records of a file are; only their lengths are looked at.

    Raises:
        DataError: It is cut or damaged, or is no such file.
    """
    name, at, number, every = str(file.path), 0, 0, 1
    marks: list[int] = []
    buffer, begin = memoryview(b""), 0
    while at < file.size_bytes:
        if number % every == 0:
            marks.append(at)
        if not begin <= at <= begin + len(buffer) - _HEAD.size:
            begin = at
            buffer = memoryview(bytearray(min(PIECE_BYTES, file.size_bytes - at)))
            file.read_at([(begin, len(buffer))], buffer)
        length = _read_length(buffer, at - begin, name, number)
        at += length + FRAME_BYTES
        if at > file.size_bytes:
            _refuse_cut(name, number)
        if number == 0:
            every = min(max(1, PIECE_BYTES // at), _MOST_SKIPPED)
        number += 1
    return Index(number, every, np.array([*marks, at]))


def read_frames(file: DataFile, index: Index, start: int, stop: int) -> Iterator[Frames]:
    """Gives the records from `start` to `stop`, some at a time."""
    first, last = start // index.every, -(-stop // index.every)
    name = str(file.path)
    while first < last:
        begin = int(index.marks[first])
        # As many marks as fit into a piece, at least one step.
        fitting = int(np.searchsorted(index.marks, begin + PIECE_BYTES, "right")) - 1
        end = min(max(fitting, first + 1), last)
        data = bytearray(int(index.marks[end]) - begin)
        file.read_at([(begin, len(data))], memoryview(data))
        frames, _ = _cut(memoryview(data), name, first * index.every)
        yield _only(frames, start, stop)
        first = end


def read_all(stream: io.BufferedIOBase, name: str) -> Iterator[Frames]:
    """Gives all records of a file that is read from front to back, some at a time."""
    rest, number = b"", 0
    while more := stream.read(max(PIECE_BYTES, len(rest))):
        data = rest + more
        frames, used = _cut(memoryview(data), name, number)
        rest = data[used:]
        number += len(frames.starts)
        if len(frames.starts):
            yield frames
    if rest:
        _refuse_cut(name, number)


def _cut(data: memoryview, name: str, number: int) -> tuple[Frames, int]:
    """The whole records of some bytes, and where what is left begins."""
    starts: list[int] = []
    lengths: list[int] = []
    at = 0
    while at + _HEAD.size <= len(data):
        length = _read_length(data, at, name, number + len(starts))
        if at + length + FRAME_BYTES > len(data):
            break
        starts.append(at + _HEAD.size)
        lengths.append(length)
        at += length + FRAME_BYTES
    places = np.array([starts, lengths], np.int64)
    return Frames(name, number, np.frombuffer(data, np.uint8), places[0], places[1]), at


def _only(frames: Frames, start: int, stop: int) -> Frames:
    begin = max(start - frames.first, 0)
    rows = slice(begin, stop - frames.first)
    return Frames(
        frames.name,
        frames.first + begin,
        frames.data,
        frames.starts[rows],
        frames.lengths[rows],
    )


def _read_length(data: memoryview, at: int, name: str, number: int) -> int:
    if at + _HEAD.size > len(data):
        _refuse_cut(name, number)
    length, crc = _HEAD.unpack_from(data, at)
    if crc != _length_crc(length):
        if number == 0:
            raise DataError(
                f"{name} is not a TFRecord file: the checksum at its beginning is wrong. Expected "
                "what tf.io.TFRecordWriter writes; compressed ones end in .gz."
            )
        refuse(name, number, "is damaged: the checksum of its length is wrong")
    return int(length)


@functools.lru_cache(maxsize=4096)
def _length_crc(length: int) -> int:
    return int(masked_crc32c(np.array([length], "<u8").view(np.uint8)[None])[0])


def _refuse_cut(name: str, number: int) -> NoReturn:
    refuse(name, number, "is cut: the file ends inside it")
