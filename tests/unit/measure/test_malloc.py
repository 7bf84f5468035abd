import ctypes
import os
import subprocess
import sys

import pytest

from memfit.measure.malloc import malloc_name, read_allocator

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or "CS_GNU_LIBC_VERSION" not in os.confstr_names,
    reason="needs glibc's malloc",
)

MB = 10**6
# A file of that name in the process's maps is what a preloaded malloc looks like.
WITH_OTHER_MALLOC = """
import mmap, sys
with open(sys.argv[1], "rb") as library:
    mapping = mmap.mmap(library.fileno(), 0, prot=mmap.PROT_READ)
from memfit.measure.malloc import malloc_name, read_allocator
print(malloc_name(), read_allocator())
"""


@pytest.fixture
def libc():
    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    library.malloc.argtypes = (ctypes.c_size_t,)
    library.free.argtypes = (ctypes.c_void_p,)
    return library


def test_a_large_block_is_in_use_and_in_a_mapping_of_its_own(libc):
    before = read_allocator()

    block = libc.malloc(64 * MB)
    after = read_allocator()
    libc.free(block)

    assert after.in_use_bytes - before.in_use_bytes == pytest.approx(64 * MB, abs=MB)
    assert after.mapped_bytes - before.mapped_bytes == pytest.approx(64 * MB, abs=MB)


def test_a_large_block_that_is_freed_is_neither_in_use_nor_kept(libc):
    block = libc.malloc(64 * MB)
    before = read_allocator()

    libc.free(block)
    after = read_allocator()

    assert before.in_use_bytes - after.in_use_bytes == pytest.approx(64 * MB, abs=MB)
    assert after.free_bytes - before.free_bytes == pytest.approx(0, abs=MB)


def test_small_blocks_that_are_freed_below_a_live_one_are_kept(libc):
    blocks = [libc.malloc(10_000) for _ in range(3000)]
    last = libc.malloc(10_000)
    before = read_allocator()

    for block in blocks:
        libc.free(block)
    after = read_allocator()
    libc.free(last)

    assert before.in_use_bytes - after.in_use_bytes == pytest.approx(30 * MB, abs=2 * MB)
    assert after.free_bytes - before.free_bytes == pytest.approx(30 * MB, abs=2 * MB)


def test_glibc_is_named_with_its_version():
    assert malloc_name() == os.confstr("CS_GNU_LIBC_VERSION")


@pytest.mark.parametrize("library", ["libjemalloc.so.2", "libtcmalloc_minimal.so.4"])
def test_glibcs_figures_are_not_read_where_another_malloc_is_in_use(tmp_path, library):
    path = tmp_path / library
    path.write_bytes(b"\x7fELF")

    told = subprocess.run(
        [sys.executable, "-c", WITH_OTHER_MALLOC, path], capture_output=True, text=True, check=True
    ).stdout.split()

    assert told == [library[3:11], "None"]
