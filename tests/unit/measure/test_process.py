import os
import subprocess
import sys

import psutil
import pytest

from memfit.measure.process import (
    ProcessMemory,
    parse_status,
    read_available,
    read_children,
    read_process,
    read_proportional,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, which is Linux's own")

MB = 10**6
HOLD = """
import sys
block = bytearray(b"x") * int(sys.argv[1])
print(flush=True)
sys.stdin.read()
"""
HOLD_SHARED = """
import mmap, sys
block = mmap.mmap(-1, int(sys.argv[1]))
block.write(b"x" * int(sys.argv[1]))
print(flush=True)
sys.stdin.read()
"""
HOLD_IN_GRANDCHILD = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {HOLD!r}, sys.argv[1]])
"""
# `sleep` in the memory of this process, as between vfork and exec; then a fork, which has its own.
SHARE_AND_FORK = """
import ctypes, os, signal, sys
CLONE_VM = 0x100
libc = ctypes.CDLL(None)
stack = ctypes.create_string_buffer(1 << 16)
top = ctypes.c_void_p((ctypes.addressof(stack) + len(stack)) & ~15)
sharing = libc.clone(libc.sleep, top, CLONE_VM | signal.SIGCHLD, ctypes.c_void_p(600))
assert sharing > 0
forked = os.fork()
if not forked:
    signal.pause()
print(flush=True)
sys.stdin.read()
os.kill(sharing, signal.SIGKILL)
os.kill(forked, signal.SIGKILL)
"""
# Of a real process under Linux 6.1, shortened.
STATUS = b"""Name:\tpython
Umask:\t0022
State:\tS (sleeping)
Pid:\t4242
VmPeak:\t  301568 kB
VmSize:\t  301568 kB
VmHWM:\t  140000 kB
VmRSS:\t  139000 kB
RssAnon:\t  120000 kB
RssFile:\t   15000 kB
RssShmem:\t    4000 kB
VmData:\t  150000 kB
VmSwap:\t    2000 kB
Threads:\t1
"""
ZOMBIE_STATUS = b"""Name:\tpython
State:\tZ (zombie)
Pid:\t4242
PPid:\t4241
Threads:\t1
"""


@pytest.fixture
def gone_pid():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


@pytest.fixture
def zombie_pid():
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    yield child.pid
    child.wait()


def test_resident_memory_is_the_sum_of_its_three_kinds():
    memory = read_process(os.getpid())

    assert memory.rss_bytes == memory.anonymous_bytes + memory.file_bytes + memory.shared_bytes


def test_the_peak_outlives_the_memory_that_made_it():
    before = read_process(os.getpid())
    block = bytearray(b"x") * (before.peak_rss_bytes - before.rss_bytes + 64 * MB)
    del block

    after = read_process(os.getpid())

    assert after.peak_rss_bytes > before.peak_rss_bytes + 60 * MB


def test_a_childs_touched_block_is_anonymous_memory_of_that_child(start):
    idle, busy = start(HOLD, 1), start(HOLD, 64 * MB)

    difference_bytes = (
        read_process(busy.pid).anonymous_bytes - read_process(idle.pid).anonymous_bytes
    )

    assert difference_bytes == pytest.approx(64 * MB, abs=2 * MB)


def test_shared_memory_is_distinguished_and_counts_as_held(start):
    child = start(HOLD_SHARED, 32 * MB)

    memory = read_process(child.pid)

    assert memory.shared_bytes == pytest.approx(32 * MB, abs=MB)
    assert memory.held_bytes >= memory.anonymous_bytes + memory.shared_bytes


def test_children_are_read_with_their_size(start):
    child = start(HOLD, 64 * MB)

    sizes = {one.pid: one.memory.rss_bytes for one in read_children(os.getpid())}

    assert 64 * MB < sizes[child.pid] < 128 * MB


def test_grandchildren_are_read_too(start):
    child = start(HOLD_IN_GRANDCHILD, 64 * MB)

    below = read_children(child.pid)

    assert [one.memory.anonymous_bytes > 64 * MB for one in below] == [True]


def test_a_child_in_the_memory_of_its_parent_is_not_counted_again_and_a_fork_is(start):
    child = start(SHARE_AND_FORK)

    (forked,) = read_children(child.pid)

    assert len(psutil.Process(child.pid).children()) == 2
    assert forked.memory.rss_bytes < read_process(child.pid).rss_bytes


def test_a_child_is_read_with_its_name():
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        names = {one.pid: one.name for one in read_children(os.getpid())}

    assert names[child.pid] == "cat"


def test_a_process_that_is_gone_has_no_memory(gone_pid):
    assert read_process(gone_pid) is None


def test_a_process_that_is_gone_has_no_children(gone_pid):
    assert read_children(gone_pid) == ()


def test_a_process_that_is_gone_has_no_fair_share(gone_pid):
    assert read_proportional(gone_pid) is None


def test_a_zombie_has_no_memory(zombie_pid):
    assert read_process(zombie_pid) is None


def test_a_zombie_is_not_among_the_children(zombie_pid):
    assert zombie_pid not in {one.pid for one in read_children(os.getpid())}


def test_own_pages_are_less_than_the_fair_share_and_that_less_than_all_resident(start):
    child = start(HOLD, 64 * MB)

    fair = read_proportional(child.pid)

    # It shares Python itself with the process of the tests, so all three differ.
    assert 64 * MB < fair.uss_bytes < fair.pss_bytes < read_process(child.pid).rss_bytes


def test_what_the_machine_could_still_give_is_a_part_of_what_it_has():
    assert 0 < read_available() < psutil.virtual_memory().total


def test_a_status_text_is_read_in_bytes():
    assert parse_status(STATUS) == ProcessMemory(
        rss_bytes=139000 * 1024,
        peak_rss_bytes=140000 * 1024,
        anonymous_bytes=120000 * 1024,
        file_bytes=15000 * 1024,
        shared_bytes=4000 * 1024,
        swap_bytes=2000 * 1024,
    )


def test_the_status_of_a_zombie_says_nothing_of_memory():
    assert parse_status(ZOMBIE_STATUS) is None


def test_what_is_held_is_all_but_files_with_what_was_swapped_out():
    assert parse_status(STATUS).held_bytes == (120000 + 4000 + 2000) * 1024


def test_all_resident_memory_counts_as_held_where_its_kinds_are_unknown():
    assert ProcessMemory(rss_bytes=7 * MB).held_bytes == 7 * MB
