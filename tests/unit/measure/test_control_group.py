import shutil
import signal

import pytest

from memfit.measure.control_group import ControlGroup, ControlGroupMemory, find_control_group
from memfit.measure.pressure import Pressure

GIB = 2**30
MIB = 2**20
PID = 4242
NO_LIMIT = "9223372036854771712\n"  # version 1 on a machine with pages of 4096 bytes

MOVE_AND_TOUCH = """
import os, sys
with open(sys.argv[1] + "/cgroup.procs", "w") as members:
    members.write(str(os.getpid()))
block = bytearray(b"x") * int(sys.argv[2])
print(flush=True)
sys.stdin.read()
"""

# Ubuntu 20.04: memory is under version 1, version 2 is mounted beside it without it.
HYBRID_MOUNTS = """\
24 30 0:22 / /proc rw,nosuid,nodev,noexec,relatime shared:13 - proc proc rw
32 24 0:27 / {folder} ro,nosuid,nodev,noexec shared:9 - tmpfs tmpfs ro,mode=755
33 32 0:28 / {folder}/unified rw,nosuid,relatime shared:10 - cgroup2 cgroup2 rw,nsdelegate
34 32 0:29 / {folder}/systemd rw,nosuid,relatime shared:11 - cgroup cgroup rw,xattr,name=systemd
37 32 0:32 / {folder}/cpu,cpuacct rw,nosuid,relatime shared:15 - cgroup cgroup rw,cpu,cpuacct
38 32 0:33 / {folder}/memory rw,nosuid,nodev,noexec,relatime shared:16 - cgroup cgroup rw,memory
"""
HYBRID_MEMBERSHIPS = """\
12:cpu,cpuacct:/user.slice
9:memory:/user.slice/user-1000.slice/session-3.scope
1:name=systemd:/user.slice/user-1000.slice/session-3.scope
0::/user.slice/user-1000.slice/session-3.scope
"""
# Docker 20.10 on version 1: only the container's own group is mounted.
DOCKER_1_MOUNTS = (
    "1520 1515 0:36 {root} {folder} ro,nosuid,nodev,noexec,relatime master:20"
    " - cgroup cgroup rw,memory\n"
)
DOCKER_1_MEMBERSHIPS = """\
12:devices:/docker/4f1c0ffee
8:memory:/docker/4f1c0ffee
0::/system.slice/containerd.service
"""
VERSION_2_MOUNTS = (
    "41 35 0:31 {root} {folder} rw,nosuid,nodev,noexec,relatime shared:9"
    " - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"
)
VERSION_2_STAT = """\
anon 734003200
file 104857600
kernel 5242880
file_mapped 41943040
workingset_refault_anon 0
"""
VERSION_2_EVENTS = """\
low 0
high 0
max 512
oom 3
oom_kill 2
oom_group_kill 0
"""
VERSION_2_PRESSURE = """\
some avg10=3.00 avg60=1.00 avg300=0.10 total=100
full avg10=1.50 avg60=0.50 avg300=0.05 total=50
"""
VERSION_1_STAT = """\
cache 104857600
rss 700000000
hierarchical_memory_limit 1073741824
total_cache 104857600
total_rss 734003200
"""


@pytest.fixture
def folder(tmp_path):
    """Where the hierarchies are mounted."""
    return tmp_path / "cgroup"


@pytest.fixture
def find(tmp_path, folder):
    """Returns a function that finds the group of a process with such files in /proc."""

    def find_in(memberships, mounts, root="/"):
        proc = tmp_path / "proc"
        write(
            proc / str(PID), cgroup=memberships, mountinfo=mounts.format(folder=folder, root=root)
        )
        return find_control_group(PID, proc)

    return find_in


def write(folder, **files):
    """Writes files into a new folder; `__` in a name stands for a dot."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_version_2_in_a_container_with_its_own_namespace_is_the_mount_itself(find, folder):
    write(folder, memory__current="1048576\n", memory__max="2147483648\n")

    group = find("0::/\n", VERSION_2_MOUNTS)

    assert group == ControlGroup(folder, folder, version=2)
    assert group.limit_bytes() == 2 * GIB


def test_version_2_in_a_kubernetes_pod_that_sees_the_hosts_path_is_the_mount_itself(find, folder):
    root = "/kubepods.slice/kubepods-burstable.slice/cri-containerd-0ff1ce.scope"
    write(folder, memory__current="1048576\n", memory__max="2147483648\n")

    group = find(f"0::{root}\n", VERSION_2_MOUNTS, root=root)

    assert group == ControlGroup(folder, folder, version=2)


def test_version_2_below_the_mount_is_found_by_its_path(find, folder):
    inside = "user.slice/user-1000.slice/user@1000.service/user.slice/libpod-c0de.scope/container"
    write(folder / inside, memory__current="1048576\n", memory__max="max\n")

    assert find(f"0::/{inside}\n", VERSION_2_MOUNTS) == ControlGroup(
        folder / inside, folder, version=2
    )


@pytest.mark.parametrize(
    ("of_slice", "of_scope", "expected_bytes"),
    [
        ("4294967296\n", "max\n", 4 * GIB),
        ("max\n", "1073741824\n", GIB),
        ("4294967296\n", "1073741824\n", GIB),
        ("1073741824\n", "4294967296\n", GIB),
        ("max\n", "max\n", None),
    ],
)
def test_version_2_has_the_smallest_limit_on_the_way_to_the_mount(
    find, folder, of_slice, of_scope, expected_bytes
):
    write(folder / "job.slice", memory__current="1048576\n", memory__max=of_slice)
    write(folder / "job.slice/a.scope", memory__current="1048576\n", memory__max=of_scope)

    group = find("0::/job.slice/a.scope\n", VERSION_2_MOUNTS)

    assert group.limit_bytes() == expected_bytes


def test_a_limit_above_the_mount_is_not_looked_for(find, folder):
    write(folder.parent, memory__max="1048576\n")
    write(folder, memory__current="1048576\n", memory__max="max\n")

    assert find("0::/\n", VERSION_2_MOUNTS).limit_bytes() is None


def test_version_2_without_a_memory_controller_of_its_own_is_charged_above(find, folder):
    write(folder / "job", memory__current="1048576\n", memory__max="1073741824\n")
    write(folder / "job/init", cgroup__procs="4242\n")

    group = find("0::/job/init\n", VERSION_2_MOUNTS)

    assert group is not None
    assert group.limit_bytes() == GIB


def test_the_root_of_a_host_with_version_2_has_no_figures_and_is_no_group(find, folder):
    write(folder, cgroup__procs="1\n4242\n")

    assert find("0::/\n", VERSION_2_MOUNTS) is None


def test_version_1_is_chosen_where_both_are_mounted_and_it_has_memory(find, folder):
    inside = "user.slice/user-1000.slice/session-3.scope"
    write(folder / "unified" / inside, memory__pressure=VERSION_2_PRESSURE)
    write(folder / "memory" / inside, memory__usage_in_bytes="1048576\n")

    group = find(HYBRID_MEMBERSHIPS, HYBRID_MOUNTS)

    assert group == ControlGroup(folder / "memory" / inside, folder / "memory", version=1)


def test_version_2_is_chosen_where_both_are_mounted_and_it_has_memory(find, folder):
    without_memory = HYBRID_MEMBERSHIPS.replace("9:memory:", "9:pids:")
    inside = "user.slice/user-1000.slice/session-3.scope"
    write(folder / "unified" / inside, memory__current="1048576\n")

    group = find(without_memory, HYBRID_MOUNTS)

    assert group == ControlGroup(folder / "unified" / inside, folder / "unified", version=2)


@pytest.mark.parametrize("root", ["/docker/4f1c0ffee", "/"])
def test_version_1_in_docker_is_the_mount_where_the_hosts_path_is_not_visible(find, folder, root):
    write(folder, memory__usage_in_bytes="1048576\n", memory__limit_in_bytes="2147483648\n")

    group = find(DOCKER_1_MEMBERSHIPS, DOCKER_1_MOUNTS, root=root)

    assert group == ControlGroup(folder, folder, version=1)
    assert group.limit_bytes() == 2 * GIB


def test_version_1_without_a_limit_says_so_in_its_own_way(tmp_path):
    write(tmp_path, memory__limit_in_bytes=NO_LIMIT)

    assert ControlGroup(tmp_path, tmp_path, version=1).limit_bytes() is None


def test_without_control_groups_there_is_none(find):
    assert find("", "24 30 0:22 / /proc rw,relatime shared:13 - proc proc rw\n") is None


def test_a_process_that_is_gone_has_no_group(tmp_path):
    assert find_control_group(PID, tmp_path) is None


def test_version_2_reports_use_what_cannot_be_reclaimed_kills_and_pressure(tmp_path):
    write(
        tmp_path,
        memory__current="838860800\n",
        memory__stat=VERSION_2_STAT,
        memory__events=VERSION_2_EVENTS,
        memory__pressure=VERSION_2_PRESSURE,
    )

    assert ControlGroup(tmp_path, tmp_path, version=2).read() == ControlGroupMemory(
        usage_bytes=838860800,
        anonymous_bytes=734003200,
        oom_kills=2,
        pressure=Pressure(some_percent=3.0, full_percent=1.5),
    )


def test_version_1_reports_use_what_cannot_be_reclaimed_and_kills(tmp_path):
    write(
        tmp_path,
        memory__usage_in_bytes="838860800\n",
        memory__stat=VERSION_1_STAT,
        memory__oom_control="oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    )

    assert ControlGroup(tmp_path, tmp_path, version=1).read() == ControlGroupMemory(
        usage_bytes=838860800, anonymous_bytes=734003200, oom_kills=2
    )


def test_kills_are_unknown_where_the_kernel_is_too_old_to_count_them(tmp_path):
    write(
        tmp_path,
        memory__usage_in_bytes="838860800\n",
        memory__oom_control="oom_kill_disable 0\nunder_oom 0\n",
    )

    assert ControlGroup(tmp_path, tmp_path, version=1).read().oom_kills is None


@pytest.mark.parametrize("version", [1, 2])
def test_a_group_that_was_removed_reads_as_gone(tmp_path, version):
    folder = tmp_path / "gone"
    write(folder, memory__current="1\n", memory__usage_in_bytes="1\n")
    group = ControlGroup(folder, folder, version)
    shutil.rmtree(folder)

    assert group.read() is None


def test_a_real_group_reports_what_its_process_touched(group_folder, start):
    child = start(MOVE_AND_TOUCH, group_folder, 64 * MIB)

    group = find_control_group(child.pid)

    assert group.path == group_folder
    assert 64 * MIB <= group.read().anonymous_bytes < 96 * MIB


def test_a_real_group_counts_the_kill_of_a_process_that_went_beyond_its_limit(group_folder, start):
    for name in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"):  # swap is no way out
        if (group_folder / name).exists():
            (group_folder / name).write_text(str(32 * MIB))

    child = start(MOVE_AND_TOUCH, group_folder, 256 * MIB)

    assert child.wait() == -signal.SIGKILL
    assert ControlGroup(group_folder, group_folder, version=1).read().oom_kills == 1
