"""`tf.train.Example` messages, read without TensorFlow or protobuf.

Records of a data set mostly differ in their values only. So a record is parsed to find where its
values lie, and the values of all records that are laid out alike are taken at once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

BYTES, FLOAT, INT = "bytes", "float", "int"
_KINDS = {1: BYTES, 2: FLOAT, 3: INT}
_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
_MOST_VARINT_BYTES = 10
# Bits of a byte that are the same in records that are laid out alike.
_SAME = {BYTES: 0xFF, FLOAT: 0x00, INT: 0x80}
# After so many, records are not compared any more: hardly any two are laid out alike.
_MOST_GROUPS = 16

Rows = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Span:
    """Where the values of a feature lie in a record.

    Attributes:
        kind: What they are: `"bytes"`, `"float"` or `"int"`.
        at: The places of their bytes.
    """

    kind: str
    at: npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Alike:
    """Records that are laid out alike.

    Attributes:
        rows: Which of the records.
        spans: Where their values lie, by the name of the feature.
        records: The bytes of these records.
    """

    rows: npt.NDArray[np.intp]
    spans: Mapping[str, Span]
    records: Rows

    def take(self, name: str) -> npt.NDArray[Any]:
        """Returns the numbers of a feature: a row for each record."""
        span = self.spans[name]
        data = self.records.take(span.at, axis=1)
        if span.kind == FLOAT:
            return data.view("<f4") if data.shape[1] else np.empty(data.shape, np.float32)
        return _decode_varints(data)


def group_alike(records: Rows) -> Iterator[Alike]:
    """Gives records of one length in groups, by how they are laid out.

    Raises:
        BadExampleError: A record is no such message.
    """
    left = np.arange(len(records))
    num_groups = 0
    while len(left):
        num_groups += 1
        first = records[left[0]]
        try:
            spans = parse(first.tobytes())
        except ValueError as error:
            raise BadExampleError(int(left[0]), str(error)) from None
        mask = np.full(records.shape[1], 0xFF, np.uint8)
        for span in spans.values():
            mask[span.at] = _SAME[span.kind]
        others = left if num_groups < _MOST_GROUPS else left[:1]
        is_alike = (((records[others] ^ first) & mask) == 0).all(axis=1)
        yield Alike(others[is_alike], spans, records[others[is_alike]])
        left = np.concatenate([others[~is_alike], left[len(others) :]])


class BadExampleError(ValueError):
    """A record is no Example.

    Args:
        row: Which.
        reason: Why.
    """

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row = row


def parse(record: bytes) -> dict[str, Span]:
    """Returns where the values of each feature of a record lie.

    Raises:
        ValueError: It is no Example.
    """
    found: dict[str, Span] = {}
    for _, start, stop in _inside(record, 0, len(record), 1, _LENGTH):
        for _, first, last in _inside(record, start, stop, 1, _LENGTH):
            name, span = _parse_entry(record, first, last)
            if span is not None:
                found[name] = span
    return found


def _parse_entry(record: bytes, start: int, stop: int) -> tuple[str, Span | None]:
    name, span = "", None
    for number, wire, first, last in _fields(record, start, stop):
        if wire == _LENGTH and number == 1:
            name = record[first:last].decode()
        elif wire == _LENGTH and number == 2:
            for kind, _, begin, end in _fields(record, first, last):
                if kind in _KINDS:
                    span = _parse_list(record, begin, end, _KINDS[kind])
    return name, span


def _parse_list(record: bytes, start: int, stop: int, kind: str) -> Span:
    """Values come all together, or each with a tag of its own; bytes always do."""
    alone = {BYTES: _LENGTH, FLOAT: _FOUR_BYTES, INT: _VARINT}[kind]
    places = [
        np.arange(first, last)
        for number, wire, first, last in _fields(record, start, stop)
        if number == 1 and wire in (_LENGTH, alone)
    ]
    at = np.concatenate(places) if places else np.empty(0, np.intp)
    if kind == FLOAT and len(at) % 4:
        raise ValueError(f"{len(at)} bytes of floats, which are 4 each")
    if kind == INT and len(at):
        _check_varints(np.frombuffer(record, np.uint8)[at])
    return Span(kind, at)


def _check_varints(data: Rows) -> None:
    ends = np.flatnonzero(data < 0x80)
    if len(ends) == 0 or ends[-1] != len(data) - 1:
        raise ValueError("a whole number is cut")
    if np.diff(ends, prepend=-1).max() > _MOST_VARINT_BYTES:
        raise ValueError("a whole number is longer than 10 bytes")


def _decode_varints(data: Rows) -> npt.NDArray[np.int64]:
    """Numbers of rows in which they have the same lengths: 7 bits a byte, the lowest first."""
    if data.shape[1] == 0:
        return np.empty(data.shape, np.int64)
    ends = np.flatnonzero(data[0] < 0x80)
    starts = np.concatenate(([0], ends[:-1] + 1))
    place = np.arange(data.shape[1]) - np.repeat(starts, ends - starts + 1)
    parts = (data & 0x7F).astype(np.uint64) << (7 * place).astype(np.uint64)
    return np.bitwise_or.reduceat(parts, starts, axis=1).view(np.int64)


def _inside(
    record: bytes, start: int, stop: int, number: int, wire: int
) -> Iterator[tuple[int, int, int]]:
    for found, kind, first, last in _fields(record, start, stop):
        if (found, kind) == (number, wire):
            yield found, first, last


def _fields(record: bytes, start: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
    """Gives number, wire type and place of each field of a message."""
    at = start
    while at < stop:
        tag, at = _read_varint(record, at, stop)
        number, wire = tag >> 3, tag & 7
        first = at
        if wire == _VARINT:
            _, at = _read_varint(record, at, stop)
        elif wire == _LENGTH:
            size, first = _read_varint(record, at, stop)
            at = first + size
        elif wire in (_EIGHT_BYTES, _FOUR_BYTES):
            at += 8 if wire == _EIGHT_BYTES else 4
        else:
            raise ValueError(f"a field of unknown kind {wire} at byte {first}")
        if at > stop or number == 0:
            raise ValueError(f"a field at byte {first} does not end inside its message")
        yield number, wire, first, at


def _read_varint(record: bytes, at: int, stop: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 7 * _MOST_VARINT_BYTES, 7):
        if at >= stop:
            break
        byte = record[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError(f"a number is cut at byte {at}")
