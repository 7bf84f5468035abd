"""The checksum of TFRecord files (CRC-32C), of many records of one length at a time.

A CRC is linear: each byte adds what a table has for its value and its distance from the end. So
NumPy looks up a whole block at once, and what came before is mixed into the first bytes of it.
"""

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

_POLYNOMIAL = np.uint32(0x82F63B78)
_BLOCK = 1024
# Bytes that are looked up at a time, and what that takes: a copy, places (8 each) and sums (4).
_AT_A_TIME = 1 << 14
SCRATCH_BYTES = 13 * _AT_A_TIME
_MASK_ADDED = np.uint32(0xA282EAD8)
_ALL_ONES = np.uint32(0xFFFFFFFF)

Sums = npt.NDArray[np.uint32]


def masked_crc32c(rows: npt.NDArray[Any]) -> Sums:
    """Returns the checksum of each row of bytes, as TFRecord files have it.

    Example:
    >>> hex(masked_crc32c(np.frombuffer(b"123456789", np.uint8)[None])[0])
    '0xc78ab0e5'
    """
    crc = crc32c(rows)
    return ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + _MASK_ADDED


def crc32c(rows: npt.NDArray[Any]) -> Sums:
    """Returns the plain checksum of each row of bytes.

    Example:
    >>> hex(crc32c(np.frombuffer(b"123456789", np.uint8)[None])[0])
    '0xe3069283'
    """
    length = rows.shape[1]
    step = max(1, _AT_A_TIME // max(1, min(length, _BLOCK)))
    parts = [_sum(rows[at : at + step]) for at in range(0, len(rows), step)]
    return np.concatenate(parts) if parts else np.empty(0, np.uint32)


def _sum(rows: npt.NDArray[Any]) -> Sums:
    crc = np.full(len(rows), _ALL_ONES)
    length = rows.shape[1]
    # A first block of odd size; mixing needs four bytes, so fewer are taken one by one.
    at = 0
    while at < length:
        size = (length - at) % _BLOCK or _BLOCK
        size = size if size >= 4 else 1
        crc = _add(crc, rows[:, at : at + size])
        at += size
    return crc ^ _ALL_ONES


def _add(crc: Sums, block: npt.NDArray[Any]) -> Sums:
    tables = _make_tables()
    size = block.shape[1]
    if size == 1:
        low = (crc ^ block[:, 0]) & np.uint32(0xFF)
        shifted: Sums = (crc >> np.uint32(8)) ^ tables[0, low]
        return shifted
    mixed = block.copy()
    mixed[:, :4] ^= crc.astype("<u4")[:, None].view(np.uint8)
    found = tables[np.arange(size - 1, -1, -1), mixed]
    sums: Sums = np.bitwise_xor.reduce(found, axis=1)
    return sums


@functools.cache
def _make_tables() -> Sums:
    """What a byte adds, by how many bytes come after it and by its value."""
    one = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        one = np.where(one & np.uint32(1), (one >> np.uint32(1)) ^ _POLYNOMIAL, one >> np.uint32(1))
    tables = np.empty((_BLOCK, 256), np.uint32)
    tables[0] = one
    for at in range(1, _BLOCK):
        before = tables[at - 1]
        tables[at] = (before >> np.uint32(8)) ^ one[before & np.uint32(0xFF)]
    return tables
