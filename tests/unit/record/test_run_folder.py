import os
import re
from pathlib import Path

import pytest
from msgspec import structs

from memfit.errors import RunExistsError, RunNotFoundError
from memfit.record.jsonl import encode
from memfit.record.run_folder import create_file, create_run, find_run, is_run, list_runs
from memfit.record.samples import FORMAT, Header

HEADER = Header(format=FORMAT, role="supervisor", pid=1, t_s=1.0, wall_time_s=1e9)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def runs(tmp_path):
    """Where runs are kept; empty."""
    folder = tmp_path / "memfit-runs"
    folder.mkdir()
    return folder


def write_run(folder, begun_s=1e9, written_s=None):
    folder.mkdir(parents=True)
    path = folder / "supervisor.jsonl"
    path.write_bytes(encode(structs.replace(HEADER, wall_time_s=begun_s)))
    os.utime(path, (written_s or begun_s, written_s or begun_s))
    return folder


def test_runs_are_listed_newest_first(runs):
    middle = write_run(runs / "20260102-120000-train", begun_s=2e9)
    oldest = write_run(runs / "20260101-120000-train", begun_s=1e9)
    newest = write_run(runs / "20260103-120000-train", begun_s=3e9)

    assert list_runs(runs) == [newest, middle, oldest]


def test_a_long_run_that_was_begun_earlier_is_not_newer(runs):
    longer = write_run(runs / "20260101-120000-train", begun_s=1e9, written_s=1e9 + 7200)
    newest = write_run(runs / "20260101-123000-train", begun_s=1e9 + 1800)

    assert list_runs(runs) == [newest, longer]


def test_what_is_no_run_is_not_listed(runs):
    (runs / "notes").mkdir()
    (runs / "notes" / "ideas.txt").touch()
    (runs / "stray.jsonl").touch()

    assert list_runs(runs) == []


def test_a_folder_of_runs_that_is_missing_holds_none(tmp_path):
    assert list_runs(tmp_path / "missing") == []


def test_nothing_named_means_the_newest_run(runs):
    write_run(runs / "20260101-120000-train", begun_s=1e9)
    newest = write_run(runs / "20260102-120000-train", begun_s=2e9)

    assert find_run(None, runs) == newest


def test_a_run_is_found_by_its_name(runs):
    run = write_run(runs / "20260101-120000-train")
    write_run(runs / "20260102-120000-train", begun_s=2e9)

    assert find_run("20260101-120000-train", runs) == run


def test_a_run_is_found_by_its_folder(runs, tmp_path):
    elsewhere = write_run(tmp_path / "elsewhere")

    assert find_run(str(elsewhere), runs) == elsewhere


def test_without_any_run_the_way_to_record_one_is_shown(here):
    with pytest.raises(RunNotFoundError) as raised:
        find_run(None)

    assert str(raised.value) == (
        "No run is recorded here: memfit-runs/ is empty or missing. "
        "Record one with: memfit run train.py"
    )


def test_an_unknown_name_is_reported_with_the_newest_names(here):
    for number in range(1, 5):
        write_run(here / "memfit-runs" / f"run-{number}", begun_s=number * 1e9)

    with pytest.raises(RunNotFoundError) as raised:
        find_run("rnu-1")

    assert str(raised.value) == (
        "No run named 'rnu-1'. Recent runs: run-4, run-3, run-2. List all with: memfit runs"
    )


def test_a_file_given_for_a_run_is_distinguished(here):
    Path("train.py").touch()

    with pytest.raises(
        RunNotFoundError, match=r"'train\.py': that is a file, and a run is a folder\."
    ):
        find_run("train.py")


def test_a_folder_without_a_recording_is_distinguished(here):
    Path("logs").mkdir()

    with pytest.raises(RunNotFoundError, match=r"it has no supervisor\.jsonl"):
        find_run("logs")


def test_where_there_is_no_run_yet_no_names_are_offered(here):
    with pytest.raises(RunNotFoundError, match=r"memfit-runs/ has no runs yet\."):
        find_run("run-1")


def test_a_new_run_is_named_for_its_time_and_script(here):
    run = create_run("examples/train.py")

    assert re.fullmatch(r"memfit-runs/\d{8}-\d{6}-train", str(run))
    assert run.is_dir()


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("my train [v2].py", "my-train-v2"),
        ("../../up.py", "up"),
        ("训练.py", "run"),
        ("-rf.py", "rf"),
        ("x" * 300 + ".py", "x" * 60),
    ],
)
def test_any_script_gives_a_name_that_every_file_system_takes(here, target, name):
    run = create_run(target)

    assert run.parent == Path("memfit-runs")
    assert re.sub(r"^\d{8}-\d{6}-", "", run.name) == name


def test_git_passes_over_the_folder_of_runs_that_memfit_makes(here):
    create_run("train.py")

    assert (here / "memfit-runs" / ".gitignore").read_text() == "*\n"


def test_a_folder_of_runs_that_was_there_is_left_as_it_is(here, runs):
    create_run("train.py")

    assert not (runs / ".gitignore").exists()


def test_runs_begun_in_the_same_second_get_folders_of_their_own(here):
    created = [create_run("train.py") for _ in range(20)]

    assert len(set(created)) == 20
    assert all(run.is_dir() for run in created)


def test_a_folder_that_was_asked_for_is_made_with_those_above_it(tmp_path):
    out = tmp_path / "results" / "first"

    assert create_run("train.py", out) == out
    assert out.is_dir()


def test_an_empty_folder_that_was_asked_for_is_used(tmp_path):
    assert create_run("train.py", tmp_path) == tmp_path


def test_a_folder_that_holds_a_run_is_never_used_again(tmp_path):
    out = write_run(tmp_path / "first")

    with pytest.raises(RunExistsError) as raised:
        create_run("train.py", out)

    assert str(raised.value) == (
        f"The folder already holds a run. Received: {str(out)!r}. Expected a new or empty folder: "
        "a run is never overwritten, and two runs cannot share one. "
        "Name another folder, or remove this one first."
    )


def test_a_process_number_that_comes_again_gets_a_file_of_its_own(tmp_path):
    for _ in range(3):
        create_file(tmp_path, 7).touch()

    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "agent-7-2.jsonl",
        "agent-7-3.jsonl",
        "agent-7.jsonl",
    ]


def test_a_file_of_any_process_makes_a_folder_a_run(tmp_path):
    create_file(tmp_path, 7).touch()

    assert is_run(tmp_path)
