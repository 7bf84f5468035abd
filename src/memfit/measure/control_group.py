"""The control group of a process: its memory limit, use and kills, version 1 or 2."""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import msgspec

from memfit.measure.pressure import Pressure, read_pressure

# Version 1 writes "no limit" as the largest multiple of a page below 2**63.
_NO_LIMIT_BYTES = 2**60


class ControlGroupMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """One reading of a control group.

    Attributes:
        usage_bytes: All that is charged to the group, page cache included.
        anonymous_bytes: The part that cannot be reclaimed: what brings the kill.
        oom_kills: Processes of the group that the kernel has killed so far.
        pressure: Waiting for memory inside the group (version 2 only).
    """

    usage_bytes: int
    anonymous_bytes: int | None = None
    oom_kills: int | None = None
    pressure: Pressure | None = None


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """Where the files of a memory control group are.

    Attributes:
        path: The folder of the group.
        mount: The folder of the whole hierarchy; limits above `path` count too.
        version: `1` or `2`.
    """

    path: Path
    mount: Path
    version: int

    def limit_bytes(self) -> int | None:
        """Returns the smallest limit on the way from the group to the root."""
        name = "memory.max" if self.version == 2 else "memory.limit_in_bytes"
        limits = []
        folder = self.path
        while True:
            limit = _read_int(folder / name)
            if limit is not None and limit < _NO_LIMIT_BYTES:
                limits.append(limit)
            if folder in (self.mount, folder.parent):
                return min(limits, default=None)
            folder = folder.parent

    def read(self) -> ControlGroupMemory | None:
        """Returns what the group uses now, or `None` if it is gone."""
        if self.version == 2:
            return self._read_version_2()
        usage_bytes = _read_int(self.path / "memory.usage_in_bytes")
        if usage_bytes is None:
            return None
        return ControlGroupMemory(
            usage_bytes=usage_bytes,
            anonymous_bytes=_read_table(self.path / "memory.stat").get("total_rss"),
            oom_kills=_read_table(self.path / "memory.oom_control").get("oom_kill"),
        )

    def _read_version_2(self) -> ControlGroupMemory | None:
        usage_bytes = _read_int(self.path / "memory.current")
        if usage_bytes is None:
            return None
        return ControlGroupMemory(
            usage_bytes=usage_bytes,
            anonymous_bytes=_read_table(self.path / "memory.stat").get("anon"),
            oom_kills=_read_table(self.path / "memory.events").get("oom_kill"),
            pressure=read_pressure(self.path / "memory.pressure"),
        )


def find_control_group(pid: int, proc: Path = Path("/proc")) -> ControlGroup | None:
    """Returns the memory control group of process `pid`, or `None` where there is none.

    A container often sees its own group as the root of the mount while
    `/proc/PID/cgroup` still shows the host's path; the mount is then the group.
    """
    try:
        memberships = (proc / str(pid) / "cgroup").read_text()
        mounts = (proc / str(pid) / "mountinfo").read_text()
    except OSError:
        return None
    for version, inside in _memory_memberships(memberships):
        mount = _mount_of(mounts, version)
        if mount is None:
            continue
        folder, root = mount
        path = folder / inside.relative_to(root) if inside.is_relative_to(root) else folder
        group = _charged(path if path.is_dir() else folder, folder, version)
        if group is not None:
            return group
    return None


def _charged(path: Path, mount: Path, version: int) -> ControlGroup | None:
    """The group that pays: in version 2 the nearest one above that counts memory."""
    while True:
        group = ControlGroup(path, mount, version)
        if group.read() is not None:
            return group
        if path in (mount, path.parent):
            return None
        path = path.parent


def _memory_memberships(text: str) -> list[tuple[int, PurePosixPath]]:
    """Version 1 before version 2: where both are mounted, version 1 has the memory controller."""
    found = []
    for line in text.splitlines():
        number, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            found.append((1, PurePosixPath(path)))
        elif number == "0" and not controllers:
            found.append((2, PurePosixPath(path)))
    return sorted(found, key=lambda membership: membership[0])


def _mount_of(mountinfo: str, version: int) -> tuple[Path, PurePosixPath] | None:
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields, (kind, _, options) = left.split(), (*right.split(), "", "", "")[:3]
        is_version_1 = kind == "cgroup" and "memory" in options.split(",")
        if (version == 1 and is_version_1) or (version == 2 and kind == "cgroup2"):
            return Path(fields[4]), PurePosixPath(fields[3])
    return None


def _read_int(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _read_table(path: Path) -> dict[str, int]:
    """Reads lines of `name value`; what is not of that form is passed over."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.split() for line in lines)
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
