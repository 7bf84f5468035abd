"""Writes `tf.train.Example` records as TensorFlow does, byte for byte, but without it."""

import struct

import google_crc32c
import numpy as np


def varint(value):
    value &= (1 << 64) - 1
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def make_feature(values, *, is_packed=True):
    if isinstance(values, bytes):
        return field(1, field(1, values))
    values = np.asarray(values)
    if values.dtype.kind == "f":
        data = [values.astype("<f4").tobytes()] if is_packed else values.astype("<f4")
        alone = [b"\x0d" + np.float32(one).tobytes() for one in values]
        return field(2, field(1, data[0]) if is_packed else b"".join(alone))
    each = [varint(int(one)) for one in values]
    packed = field(1, b"".join(each)) if is_packed else b"".join(b"\x08" + one for one in each)
    return field(3, packed)


def make_example(*, is_packed=True, **features):
    entries = [
        field(1, field(1, name.encode()) + field(2, make_feature(values, is_packed=is_packed)))
        for name, values in features.items()
    ]
    return field(1, b"".join(entries))


def crc(data):
    plain = google_crc32c.value(data)
    return struct.pack("<I", ((plain >> 15 | plain << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def frame(data):
    length = struct.pack("<Q", len(data))
    return length + crc(length) + data + crc(data)
