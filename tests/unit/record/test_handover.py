from pathlib import Path

import pytest

from memfit.budget import Budget
from memfit.record.handover import Handover


@pytest.mark.parametrize(
    "told",
    [{"adds_logs": True}, {"budget": Budget(4_000)}, {"budget": Budget(6_000, "device")}],
    ids=str,
)
def test_what_a_supervisor_leaves_is_what_a_process_below_finds(tmp_path, told):
    handover = Handover(run=tmp_path, supervisor_pid=7, **told)

    assert Handover.from_environment(handover.to_environment()) == handover


def test_a_script_that_changes_its_folder_still_finds_the_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    left = Handover(run=Path("memfit-runs/first"), supervisor_pid=7).to_environment()
    monkeypatch.chdir("/")

    found = Handover.from_environment(left)

    assert found.run == tmp_path / "memfit-runs" / "first"


def test_without_a_supervisor_nothing_is_found():
    assert Handover.from_environment({"HOME": "/root"}) is None
