import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from memfit.budget import Budget
from memfit.diagnose.causes.finding import Finding
from memfit.diagnose.diagnosis import Diagnosis, Run
from memfit.diagnose.growth.growth import Growth
from memfit.diagnose.growth.phases import Phase
from memfit.measure.limits import Limit
from memfit.measure.process import ProcessMemory
from memfit.record.recording import Recording
from memfit.record.samples import Exit, Header, Sample, Software, Trouble
from memfit.report.run.json import render_json, render_json_list

RECORDING = Recording(
    "20260101-120000-train",
    header=Header(10.0, 1, "supervisor", 1, 1e9, memfit="0.1.0", python="3.11.7"),
    software=Software(12.0, "jax", {"keras": "3.15.1", "jax": "0.10.2"}),
    inside=tuple(
        Sample(t_s, 7, ProcessMemory(rss_bytes=10**9), probe_s=probe_s)
        for t_s, probe_s in [(11.0, 0.01), (60.0, 0.25)]
    ),
    exit=Exit(70.0, signal="SIGKILL"),
    begin_t_s=10.0,
    end_t_s=70.1234,
    troubles=(Trouble(20.0, "sample", "OSError: no such file"),),
    notes=("agent-7.jsonl: 1 damaged line was skipped; the rest was read.",),
)
DIAGNOSIS = Diagnosis(
    "killed",
    peak_bytes=1_310_000_000,
    limit=Limit(2 * 10**9, "cgroup v2"),
    growth=Growth(
        bytes_per_s=1_000_000.4,
        bytes_per_epoch=12_000_000.0,
        bytes_per_step=None,
        low_share=0.91234,
        high_share=1.1,
        begin_t_s=20.0,
        end_t_s=60.0,
        num_intervals=6,
        unit="epoch",
    ),
    projected_exhaustion_s=690.04,
    phases=(Phase("epoch", 2, 22.0, 34.5, calls=1, peak_bytes=10**9, change_bytes=-5),),
    findings=(
        Finding(
            "killed",
            "Killed by the kernel.",
            "certain",
            "Give it more memory.",
            evidence={"group_oom_kills": 1},
            file="train.py",
            line=12,
        ),
        Finding(
            "held-tensors",
            "A list grows.",
            "certain",
            "Keep the numbers.",
            file="train.py",
            line=14,
            before="losses.append(loss)",
            after="losses.append(float(loss))",
            growth_bytes=83_000_000,
            share=0.83456,
            lint=("MF201",),
            notes=("gc.collect() did not help.",),
        ),
    ),
)
DOCUMENTATION = Path(__file__).parents[4] / "docs" / "json.md"
# What docs and CI scripts rely on, with the types that may stand there.
DOCUMENTED = {
    "format": int,
    "verdict": str,
    "peak_bytes": int | None,
    "limit_bytes": int | None,
    "limit_source": str | None,
    "growth": dict | None,
    "phases": list,
    "findings": list,
    "exit": dict,
    "budget": dict | None,
    "backend": str | None,
    "versions": dict,
    "overhead": dict,
    "run": str,
    "why_unknown": str | None,
    "notes": list,
}
NOTHING = Run(Recording("empty"), Diagnosis("unknown", why_unknown="Nothing was seen."))


@pytest.fixture
def result():
    return json.loads(render_json(Run(RECORDING, DIAGNOSIS)))


@pytest.mark.parametrize("run", [Run(RECORDING, DIAGNOSIS), NOTHING], ids=["full", "empty"])
def test_every_run_has_exactly_the_documented_keys(run):
    assert set(json.loads(render_json(run))) == set(DOCUMENTED)


@pytest.mark.parametrize("run", [Run(RECORDING, DIAGNOSIS), NOTHING], ids=["full", "empty"])
def test_every_value_has_its_documented_type(run):
    result = json.loads(render_json(run))

    wrong = {
        name: result[name] for name, kind in DOCUMENTED.items() if not is_a(result[name], kind)
    }

    assert wrong == {}


def is_a(value, kind):
    return isinstance(value, kind) and not isinstance(value, bool)


def test_every_key_is_in_the_documentation():
    rows = re.findall(r"^\| (`.*?) \|", DOCUMENTATION.read_text(), re.MULTILINE)

    names = {name for row in rows for name in re.findall(r"`(\w+)`", row)}

    assert names == set(DOCUMENTED)


def test_the_figures_are_those_of_the_diagnosis(result):
    names = ("format", "verdict", "peak_bytes", "limit_bytes", "limit_source")

    assert [result[name] for name in names] == [
        1,
        "killed",
        1_310_000_000,
        2 * 10**9,
        "cgroup v2",
    ]


def test_growth_is_reported_in_whole_bytes_with_its_interval(result):
    assert result["growth"] == {
        "bytes_per_epoch": 12_000_000,
        "bytes_per_step": None,
        "bytes_per_s": 1_000_000,
        "projected_exhaustion_s": 690.0,
        "interval": [0.912, 1.1],
        "num_intervals": 6,
    }


def test_a_phase_is_timed_from_the_beginning_of_the_run(result):
    assert result["phases"] == [
        {
            "name": "epoch",
            "number": 2,
            "begin_s": 12.0,
            "end_s": 24.5,
            "finished": True,
            "calls": 1,
            "peak_bytes": 10**9,
            "change_bytes": -5,
        }
    ]


def test_a_finding_is_reported_with_its_evidence_and_place(result):
    assert result["findings"][:1] == [
        {
            "code": "killed",
            "message": "Killed by the kernel.",
            "confidence": "certain",
            "file": "train.py",
            "line": 12,
            "evidence": {"group_oom_kills": 1},
            "fix": "Give it more memory.",
            "before": None,
            "after": None,
            "growth_bytes": None,
            "share": None,
            "is_problem": True,
            "lint": [],
            "notes": [],
        }
    ]


def test_a_finding_is_reported_with_the_statement_and_how_to_fix_it(result):
    told = result["findings"][1]

    assert (told["before"], told["after"]) == ("losses.append(loss)", "losses.append(float(loss))")
    assert (told["growth_bytes"], told["share"]) == (83_000_000, 0.835)
    assert (told["lint"], told["notes"]) == (["MF201"], ["gc.collect() did not help."])


def test_every_field_of_a_finding_is_in_the_documentation(result):
    text = DOCUMENTATION.read_text()

    assert [name for name in result["findings"][1] if f"`{name}`" not in text] == []


def test_the_exit_reports_code_and_signal(result):
    assert result["exit"] == {"code": None, "signal": "SIGKILL"}


def test_versions_are_memfits_pythons_and_those_of_what_was_loaded(result):
    assert result["versions"] == {
        "memfit": "0.1.0",
        "python": "3.11.7",
        "keras": "3.15.1",
        "jax": "0.10.2",
    }


def test_overhead_is_the_last_known_cost_beside_the_whole_time(result):
    assert result["overhead"] == {"probe_s": 0.25, "wall_s": 60.123}


def test_notes_report_damaged_files_and_errors_inside_memfit(result):
    assert result["notes"] == [
        "agent-7.jsonl: 1 damaged line was skipped; the rest was read.",
        "OSError: no such file",
    ]


def test_many_runs_are_one_list_in_the_order_given():
    results = json.loads(render_json_list([NOTHING, Run(RECORDING, DIAGNOSIS)]))

    assert [result["run"] for result in results] == ["empty", "20260101-120000-train"]


def test_no_runs_are_an_empty_list():
    assert json.loads(render_json_list([])) == []


@pytest.mark.parametrize(
    ("uncontrolled", "told"),
    [
        ((), {"controlled": True, "why": None}),
        (("It makes its own step.",), {"controlled": False, "why": "It makes its own step."}),
    ],
    ids=["controlled", "not controlled"],
)
def test_whether_a_budget_controlled_every_fit_is_told(uncontrolled, told):
    header = structs.replace(RECORDING.header, budget=Budget(10**9, "device"))
    run = Run(replace(RECORDING, header=header), replace(DIAGNOSIS, uncontrolled=uncontrolled))

    assert json.loads(render_json(run))["budget"] == {
        "size_bytes": 10**9,
        "place": "device",
        **told,
    }
