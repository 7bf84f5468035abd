"""A full disk or a folder that cannot be written: the script goes on, and it is said once."""

import os
import subprocess
import sys

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


def test_a_script_runs_where_no_folder_can_be_written_at_all(memfit, small_disk):
    """As in a container with a read-only root, where a temporary folder is read-only too."""
    script = memfit.script("import sys; print('finished'); sys.exit(4)")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    code = "import tempfile; tempfile._candidate_tempdir_list = lambda: ['.']; "
    code += f"from memfit.cli import main; raise SystemExit(main(['run', {str(script)!r}]))"

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=small_disk, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (4, "finished\n")
    assert done.stderr.count("memfit:") == 1
    assert "nothing is recorded" in done.stderr


def test_a_script_runs_in_a_folder_that_was_deleted(memfit):
    gone = memfit.cwd / "gone"
    gone.mkdir()
    script = memfit.script("import time; time.sleep(1); print('finished')")
    leave_and_run = f'cd "{gone}" && rmdir "{gone}" && exec "$0" "$@"'

    done = subprocess.run(
        ["sh", "-c", leave_and_run, *memfit.command, "run", str(script)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "finished\n")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("closed", ["1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_a_script_runs_with_closed_streams_and_ends_as_it_would(memfit, closed):
    script = memfit.script("import pathlib; pathlib.Path('ran').touch(); raise SystemExit(5)")

    done = subprocess.run(
        ["sh", "-c", f'exec "$0" "$@" {closed}', *memfit.command, "run", str(script)],
        cwd=memfit.cwd,
        check=False,
        capture_output=True,
    )

    assert done.returncode == 5
    assert (memfit.cwd / "ran").exists()
