"""Wrong use: a message that says what was received, what was expected and what to do."""

import pytest

from memfit.record.run_folder import list_runs


def test_an_unknown_command_names_those_there_are(memfit):
    done = memfit("rum", "train.py")

    assert done.returncode == 2
    assert "'rum'" in done.stderr
    assert "'run'" in done.stderr


def test_a_missing_script_is_named_and_nothing_is_recorded(memfit):
    done = memfit("run", "trian.py")

    assert done.returncode == 2
    assert done.stderr == (
        "memfit: SCRIPT must be a file that exists. Received: 'trian.py'. "
        "Write it as you would for python: memfit run train.py\n"
    )
    assert not (memfit.cwd / "memfit-runs").exists()


def test_a_folder_is_not_a_script(memfit):
    (memfit.cwd / "src").mkdir()

    done = memfit("run", "src")

    assert done.returncode == 2
    assert "SCRIPT must be a file, or a folder with a __main__.py. Received: 'src'." in done.stderr


def test_a_module_that_is_not_there_gives_pythons_own_message(memfit):
    done = memfit("run", "--quiet", "-m", "no_such_module")

    assert done.returncode == 1
    assert "No module named no_such_module" in done.stderr


def test_run_without_a_script_shows_the_usage(memfit):
    done = memfit("run")

    assert done.returncode == 2
    assert "memfit run [options] SCRIPT [ARGS ...]" in done.stderr


def test_two_runs_cannot_share_a_folder(memfit):
    script = memfit.script("pass")
    memfit("run", "--quiet", "--out", "mine", script)

    done = memfit("run", "--quiet", "--out", "mine", script)

    assert done.returncode == 2
    assert "already holds a run. Received: 'mine'" in done.stderr


def test_two_runs_at_once_in_one_place_get_folders_of_their_own(memfit):
    import subprocess

    memfit.script("import time; time.sleep(0.5)")
    command = [*memfit.command, "run", "--quiet", "script.py"]
    started = [subprocess.Popen(command, cwd=memfit.cwd) for _ in range(3)]

    assert [process.wait(60) for process in started] == [0, 0, 0]
    assert len(list_runs(memfit.cwd / "memfit-runs")) == 3


def test_a_json_file_that_cannot_be_written_is_reported_before_anything_runs(memfit):
    done = memfit("run", "--json", "no/such/folder.json", memfit.script("print('ran')"))

    assert done.returncode == 2
    assert done.stdout == ""
    assert (
        "--json must be a file in a folder that exists. Received: 'no/such/folder.json'"
        in done.stderr
    )


@pytest.mark.parametrize("command", ["report", "diagnose"])
def test_a_folder_that_is_no_run_is_distinguished_from_a_missing_one(memfit, command):
    (memfit.cwd / "empty").mkdir()

    no_run, missing, none = memfit(command, "empty"), memfit(command, "gone"), memfit(command)

    assert [one.returncode for one in (no_run, missing, none)] == [2, 2, 2]
    assert "No run in the folder 'empty': it has no supervisor.jsonl" in no_run.stderr
    assert "No run named 'gone'." in missing.stderr
    assert "Record one with: memfit run train.py" in none.stderr


def test_a_report_that_cannot_be_written_says_where(memfit):
    memfit("run", "--quiet", memfit.script("pass"))

    done = memfit("report", "-o", "no/such/page.html")

    assert done.returncode == 2
    assert "Received: 'no/such/page.html'" in done.stderr


def test_no_runs_yet_is_not_an_error(memfit):
    done = memfit("runs")

    assert done.returncode == 0
    assert "memfit run train.py" in done.stderr


@pytest.mark.parametrize("size", ["8 gigs", "-1GB", "", "0GB", "GB", "12"])
def test_a_size_that_cannot_be_read_says_how_to_write_one(memfit, size):
    done = memfit("run", f"--limit={size}", memfit.script("print('ran')"))

    assert done.returncode == 2
    assert done.stdout == ""
    assert f"Cannot read a memory size. Received: {size!r}. Expected a number" in done.stderr
    assert 'Write it like "512MiB" or "8GB".' in done.stderr
