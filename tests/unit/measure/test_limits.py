import os
import subprocess
import sys

import psutil
import pytest

from memfit.measure.limits import Limit, find_limit, find_limits

MIB = 2**20
UNDER_LIMITS = """
import resource, sys
for kind, size in zip(sys.argv[1::2], sys.argv[2::2]):
    resource.setrlimit(getattr(resource, kind), (int(size), resource.RLIM_INFINITY))
print(flush=True)
sys.stdin.read()
"""
HAS_PRLIMIT = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells the resource limits of another process"
)


def test_the_memory_of_the_machine_is_always_a_limit():
    assert Limit(psutil.virtual_memory().total, "machine") in find_limits(os.getpid())


def test_a_process_that_is_gone_has_the_limit_of_the_machine():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()

    assert find_limits(child.pid) == (Limit(psutil.virtual_memory().total, "machine"),)


@HAS_PRLIMIT
def test_a_child_under_a_smaller_address_space_meets_that_first(start):
    child = start(UNDER_LIMITS, "RLIMIT_AS", 512 * MIB)

    assert find_limit(child.pid) == Limit(512 * MIB, "rlimit as")


@HAS_PRLIMIT
def test_limits_are_reported_with_their_source_smallest_first(start):
    child = start(UNDER_LIMITS, "RLIMIT_AS", 512 * MIB, "RLIMIT_DATA", 256 * MIB)

    limits = find_limits(child.pid)

    assert limits[:2] == (Limit(256 * MIB, "rlimit data"), Limit(512 * MIB, "rlimit as"))
    assert limits == tuple(sorted(limits, key=lambda limit: limit.limit_bytes))


@HAS_PRLIMIT
def test_a_limit_above_the_machine_is_reported_after_it(start):
    child = start(UNDER_LIMITS, "RLIMIT_AS", 2**50)

    assert find_limits(child.pid)[-1] == Limit(2**50, "rlimit as")


def test_the_limit_of_a_real_control_group_is_reported_with_its_version(group_folder, start):
    (group_folder / "memory.limit_in_bytes").write_text(str(256 * MIB))
    child = start(UNDER_LIMITS)
    (group_folder / "cgroup.procs").write_text(str(child.pid))

    assert find_limit(child.pid) == Limit(256 * MIB, "cgroup v1")
