"""What this process's own malloc says: bytes in use, bytes it keeps for later."""

import ctypes
import functools
import platform
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

_OTHER_MALLOCS = ("jemalloc", "tcmalloc", "mimalloc", "snmalloc", "hoard")


class AllocatorMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """One reading of glibc's malloc, over all its arenas.

    Attributes:
        in_use_bytes: Handed out to the program, mapped blocks included.
        free_bytes: Given back by the program and kept by malloc.
        mapped_bytes: The part of `in_use_bytes` in mappings of its own (large blocks).
    """

    in_use_bytes: int
    free_bytes: int
    mapped_bytes: int


class _Mallinfo2(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    )


def read_allocator() -> AllocatorMemory | None:
    """Returns malloc's own figures, or `None` where glibc's malloc is not in use."""
    mallinfo2 = _find_mallinfo2()
    if mallinfo2 is None:
        return None
    info = mallinfo2()
    return AllocatorMemory(
        in_use_bytes=info.uordblks + info.hblkhd,
        free_bytes=info.fordblks,
        mapped_bytes=info.hblkhd,
    )


def trim() -> bool:
    """Has malloc give free memory back to the kernel; `False` where glibc's is not in use."""
    if _find_mallinfo2() is None:
        return False
    ctypes.CDLL(None).malloc_trim(0)
    return True


@functools.cache
def malloc_name() -> str | None:
    """Returns which malloc this process uses, such as `"glibc 2.36"` or `"jemalloc"`."""
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return None
    libraries = {line.rpartition("/")[2] for line in maps.splitlines() if "/" in line}
    for name in _OTHER_MALLOCS:
        if any(library.startswith(f"lib{name}") for library in libraries):
            return name
    library, version = platform.libc_ver()
    return f"{library} {version}" if library else "unknown libc"


@functools.cache
def _find_mallinfo2() -> Callable[[], _Mallinfo2] | None:
    """`mallinfo2` came with glibc 2.33; the older `mallinfo` overflows at 2 GB."""
    if sys.platform != "linux" or not (malloc_name() or "").startswith("glibc"):
        return None
    try:
        function = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError):
        return None
    function.restype = _Mallinfo2
    function.argtypes = ()
    return function
