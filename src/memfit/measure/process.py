"""What the operating system says of one process and of those it started."""

import contextlib
import os
import sys
from pathlib import Path

import msgspec
import psutil

# There if the kernel was built with CONFIG_PROC_CHILDREN, as nearly all are.
_KERNEL_LISTS = Path(f"/proc/self/task/{os.getpid()}/children")
_STATUS_FIELDS = {
    b"VmRSS": "rss_bytes",
    b"VmHWM": "peak_rss_bytes",
    b"RssAnon": "anonymous_bytes",
    b"RssFile": "file_bytes",
    b"RssShmem": "shared_bytes",
    b"VmSwap": "swap_bytes",
}


class ProcessMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """Memory of one process.

    Attributes:
        rss_bytes: Resident pages, shared ones included.
        peak_rss_bytes: The most that `rss_bytes` has been (the kernel's high-water mark).
        anonymous_bytes: Resident pages that no file backs: heap, tensors, arrays.
        file_bytes: Resident pages of files: libraries, mapped data. Reclaimable.
        shared_bytes: Resident shared memory (`/dev/shm`).
        swap_bytes: Anonymous pages that were swapped out.
    """

    rss_bytes: int
    peak_rss_bytes: int | None = None
    anonymous_bytes: int | None = None
    file_bytes: int | None = None
    shared_bytes: int | None = None
    swap_bytes: int | None = None

    @property
    def held_bytes(self) -> int:
        """What the kernel cannot drop without losing data; all of RSS where that is unknown."""
        if self.anonymous_bytes is None:
            return self.rss_bytes
        return self.anonymous_bytes + (self.shared_bytes or 0) + (self.swap_bytes or 0)


class ChildMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """Memory of one process that the training started, with its name."""

    pid: int
    name: str
    memory: ProcessMemory


class ProportionalMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """Memory of a process with shared pages counted fairly.

    Attributes:
        pss_bytes: Own pages plus a share of each shared page.
        uss_bytes: Pages that are not shared: what would be freed if it ended.
    """

    pss_bytes: int
    uss_bytes: int


def read_process(pid: int) -> ProcessMemory | None:
    """Returns the memory of process `pid`, or `None` if it is gone or hidden."""
    if sys.platform == "linux":
        return _read_status(Path(f"/proc/{pid}/status"))
    return _read_with_psutil(pid)


def read_children(pid: int) -> tuple[ChildMemory, ...]:
    """Returns the memory of every process below `pid`, at any depth.

    One that has not yet begun the program it was started for may still run in its parent's memory,
    which is counted once.
    """
    children = []
    for parent_pid, child_pid in _list_below(pid):
        # Shared memory gives the same figures; it may change meanwhile, so the parent is read on
        # both sides. A fork's differ: it begins without the pages of libraries.
        before, memory, after = map(read_process, (parent_pid, child_pid, parent_pid))
        if memory is not None and memory.rss_bytes and memory not in (before, after):
            children.append(ChildMemory(child_pid, _name_of(child_pid), memory))
    return tuple(children)


def read_available() -> int:
    """Returns the bytes that this machine could still give without swapping."""
    return int(psutil.virtual_memory().available)


def read_proportional(pid: int) -> ProportionalMemory | None:
    """Returns PSS and USS of process `pid`; walks all its pages, about 1 ms per GB."""
    try:
        full = psutil.Process(pid).memory_full_info()
    except psutil.Error:
        return None
    uss_bytes = getattr(full, "uss", None)
    pss_bytes = getattr(full, "pss", uss_bytes)  # PSS is known on Linux only
    if uss_bytes is None or pss_bytes is None:
        return None
    return ProportionalMemory(pss_bytes=pss_bytes, uss_bytes=uss_bytes)


def parse_status(text: bytes) -> ProcessMemory | None:
    """Returns the memory that the text of `/proc/PID/status` names.

    A zombie has no memory lines; that is `None`.
    """
    fields: dict[str, int] = {}
    for line in text.splitlines():
        name, _, value = line.partition(b":")
        field = _STATUS_FIELDS.get(name)
        if field is not None:
            fields[field] = int(value.split()[0]) * 1024
    return ProcessMemory(**fields) if "rss_bytes" in fields else None


def _read_status(path: Path) -> ProcessMemory | None:
    try:
        return parse_status(path.read_bytes())
    except OSError:
        return None


def _read_with_psutil(pid: int) -> ProcessMemory | None:
    try:
        memory = psutil.Process(pid).memory_info()
    except psutil.Error:
        return None
    return ProcessMemory(rss_bytes=memory.rss, peak_rss_bytes=getattr(memory, "peak_wset", None))


def _list_below(pid: int) -> list[tuple[int, int]]:
    """Pairs of parent and child, from the kernel's own lists where it keeps them.

    psutil has to read every process.
    """
    if not _KERNEL_LISTS.exists():
        return _list_with_psutil(pid)
    pairs: list[tuple[int, int]] = []
    pending = [pid]
    while pending:
        parent_pid = pending.pop()
        found = _read_kernel_lists(parent_pid)
        pairs += [(parent_pid, child_pid) for child_pid in found]
        pending += found
    return pairs


def _list_with_psutil(pid: int) -> list[tuple[int, int]]:
    pairs = []
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):  # it is gone by now
                pairs.append((child.ppid(), child.pid))
    return pairs


def _read_kernel_lists(pid: int) -> list[int]:
    """A child is listed under the thread that started it."""
    pids: list[int] = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                pids += map(int, (thread / "children").read_text().split())
    return pids


def _name_of(pid: int) -> str:
    try:
        return psutil.Process(pid).name()
    except psutil.Error:
        return "?"


def count_files(pid: int) -> int | None:
    """Returns how many files the process has open; `None` where that cannot be read."""
    try:
        return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return None


def count_executables(pid: int) -> int | None:
    """Returns how many regions of compiled code the process has made for itself.

    A compiler such as XLA keeps each in an executable mapping that belongs to no file.
    """
    try:
        maps = Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return None
    return maps.count("r-xp 00000000 00:00 0")
