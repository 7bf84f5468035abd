"""The memory that a process may use, and who says so."""

from collections.abc import Iterable

import msgspec
import psutil

from memfit.measure.control_group import find_control_group


class Limit(msgspec.Struct, frozen=True, omit_defaults=True):
    """A limit in bytes and its source.

    Attributes:
        limit_bytes: The limit.
        source: `"machine"`, `"cgroup v1"`, `"cgroup v2"`, `"rlimit as"` (address space) or
            `"rlimit data"`; `"asked for"` if a user named a lower one.
    """

    limit_bytes: int
    source: str


def find_limits(pid: int) -> tuple[Limit, ...]:
    """Returns every limit that holds for process `pid`, the smallest first."""
    limits = [Limit(psutil.virtual_memory().total, "machine"), *_resource_limits(pid)]
    group = find_control_group(pid)
    group_bytes = group.limit_bytes() if group else None
    if group is not None and group_bytes is not None:
        limits.append(Limit(group_bytes, f"cgroup v{group.version}"))
    return tuple(sorted(limits, key=lambda limit: limit.limit_bytes))


def find_limit(pid: int) -> Limit:
    """Returns the limit that process `pid` would meet first."""
    return find_limits(pid)[0]


def _resource_limits(pid: int) -> Iterable[Limit]:
    try:
        import resource
    except ImportError:  # Windows
        return
    if not hasattr(resource, "prlimit"):  # macOS can ask for its own process only
        return
    for source, kind in (("rlimit as", resource.RLIMIT_AS), ("rlimit data", resource.RLIMIT_DATA)):
        try:
            soft_bytes, _ = resource.prlimit(pid, kind)
        except OSError:
            continue
        if soft_bytes != resource.RLIM_INFINITY:
            yield Limit(soft_bytes, source)
