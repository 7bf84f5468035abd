import errno
import shutil
import signal
import subprocess
import sys

import pytest

from memfit.record.evidence import Mark
from memfit.record.jsonl import encode
from memfit.record.read_run import FileReader
from memfit.record.writer import Writer

WRITE_AND_DIE = """
import os, signal, sys
from pathlib import Path
from memfit.record.evidence import Mark
from memfit.record.writer import Writer
writer = Writer(Path(sys.argv[1]))
for number in (1, 2, 3):
    writer.append(Mark(float(number), "begin", "epoch", number))
os.kill(os.getpid(), signal.SIGKILL)
"""
# A file may have 100 bytes for a while; a mark takes some 60.
WRITE_BEYOND_A_LIMIT = """
import resource, sys
from pathlib import Path
from memfit.record.evidence import Mark
from memfit.record.writer import Writer
writer = Writer(Path(sys.argv[1]))
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, most))
for number in (1, 2, 3):
    writer.append(Mark(float(number), "begin", "epoch", number))
print(writer.error.errno)
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
for number in (4, 5):
    writer.append(Mark(float(number), "begin", "epoch", number))
"""
HAS_LIMITS = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals and limits")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agent-7.jsonl"


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of two pages; removed afterwards."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(folder)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("needs root: a small file system cannot be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)  # also if a test left it open


def mark(number):
    return Mark(t_s=float(number), event="begin", phase="epoch", number=number)


def numbers(path):
    return [entry.number for entry in FileReader(path).read_new()]


def test_a_line_is_whole_on_disk_as_soon_as_it_is_appended(path):
    writer = Writer(path)

    seen = []
    for number in (1, 2):
        writer.append(mark(number))
        seen.append(path.read_bytes())
    writer.close()

    assert seen == [encode(mark(1)), encode(mark(1)) + encode(mark(2))]


@HAS_LIMITS
def test_a_kill_loses_nothing_that_was_appended(path):
    killed = subprocess.run([sys.executable, "-c", WRITE_AND_DIE, path], check=False)

    assert killed.returncode == -signal.SIGKILL
    assert numbers(path) == [1, 2, 3]


def test_a_file_that_exists_is_never_overwritten(path):
    path.write_text("mine")

    with pytest.raises(FileExistsError):
        Writer(path)

    assert path.read_text() == "mine"


@HAS_LIMITS
def test_a_failed_write_is_kept_as_the_error(path):
    told = subprocess.run(
        [sys.executable, "-c", WRITE_BEYOND_A_LIMIT, path], capture_output=True, check=True
    ).stdout

    assert int(told) == errno.EFBIG


@HAS_LIMITS
def test_a_line_cut_by_a_failed_write_costs_none_of_those_after_it(path):
    subprocess.run(
        [sys.executable, "-c", WRITE_BEYOND_A_LIMIT, path], capture_output=True, check=True
    )

    reader = FileReader(path)

    assert [entry.number for entry in reader.read_new()] == [1, 4, 5]
    assert reader.skipped_lines == 1


def test_lines_are_written_again_once_a_full_disk_has_room(small_disk):
    (small_disk / "other").write_bytes(b"x" * 4096)
    writer = Writer(small_disk / "agent-7.jsonl")
    for number in range(200):
        writer.append(mark(number))
    failed_with = writer.error.errno
    (small_disk / "other").unlink()

    writer.append(mark(1000))
    writer.close()

    assert failed_with == errno.ENOSPC
    assert numbers(small_disk / "agent-7.jsonl")[-1] == 1000


def test_a_writer_that_succeeds_has_no_error(path):
    writer = Writer(path)

    writer.append(mark(1))
    writer.close()

    assert writer.error is None


def test_what_comes_after_the_end_is_dropped(path):
    writer = Writer(path)
    writer.append(mark(1))
    writer.close()

    writer.append(mark(2))
    writer.close()

    assert numbers(path) == [1]
