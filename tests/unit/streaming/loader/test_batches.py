"""Memory of batches: used again when it would be freed, and not before."""

import numpy as np

from memfit.streaming.data.source import Column
from memfit.streaming.loader.batches import BufferPool

SCHEMA = (Column("x", np.dtype("float32"), (3,)),)


def take(pool):
    return pool.allocate(SCHEMA, 8)["x"]


def test_memory_that_nobody_holds_is_used_again():
    pool = BufferPool(4)
    address = take(pool).ctypes.data

    assert take(pool).ctypes.data == address


def test_memory_is_not_used_again_while_anything_holds_it():
    pool = BufferPool(4)
    holders = [
        take(pool),
        take(pool)[2:4, 1],
        take(pool).reshape(-1).view(np.uint8),
        memoryview(take(pool)),
    ]

    for holder in holders:
        np.asarray(holder)[...] = 7
    fresh = take(pool)
    fresh[...] = 0

    assert all((np.asarray(one) == 7).all() for one in holders)


def test_no_more_is_kept_than_was_allowed():
    pool = BufferPool(1)
    held = [take(pool), take(pool)]
    first, second = (one.ctypes.data for one in held)
    held.clear()

    again = [take(pool), take(pool)]

    assert again[0].ctypes.data == first
    assert len({first, second}) == 2


def test_arrays_begin_at_a_cache_line():
    pool = BufferPool(4)

    assert all(take(pool).ctypes.data % 64 == 0 for _ in range(10))
