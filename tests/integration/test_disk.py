"""A full disk or a folder that cannot be written: the script goes on, and it is said once."""

import os
import subprocess

import pytest


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of 64 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_disk_that_fills_up_does_not_stop_the_script(memfit, small_disk):
    script = memfit.script(
        f"import time, pathlib\n"
        f"time.sleep(1.2)\n"
        f"file = open({str(small_disk / 'filler')!r}, 'wb', buffering=0)\n"
        f"try:\n"
        f"    while True: file.write(b'x' * 512)\n"
        f"except OSError: pass\n"
        f"time.sleep(7)\n"
        f"print('finished')\n"
    )

    done = memfit("run", "--out", small_disk / "run", script)

    assert done.returncode == 0
    assert done.stdout == "finished\n"
    assert done.stderr.count("memfit: cannot write the recording") == 1
    assert "No space left on device" in done.stderr
    assert "Peak" in done.stderr


def test_a_read_only_folder_does_not_stop_the_script(memfit, small_disk):
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    memfit.script("print('finished')")

    done = memfit("run", memfit.cwd / "script.py", env={"TMPDIR": str(memfit.cwd)})
    done_there = subprocess.run(
        [*memfit.command, "run", memfit.cwd / "script.py"],
        cwd=small_disk,
        env={**os.environ, "TMPDIR": str(memfit.cwd)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == done_there.returncode == 0
    assert done_there.stdout == "finished\n"
    assert done_there.stderr.count("cannot write to memfit-runs/ (Read-only file system)") == 1
    assert f"this run is recorded in {memfit.cwd}" in done_there.stderr
