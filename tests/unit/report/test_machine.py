import io
import json

import pytest
from rich.cells import cell_len
from rich.console import Console

from memfit.diagnose.machine_advice import Advice
from memfit.measure.limits import Limit
from memfit.measure.machine import Machine
from memfit.measure.nvidia import NvidiaMemory
from memfit.measure.pressure import Pressure
from memfit.report.machine import render_machine, render_machine_json

MACHINE = Machine(
    platform="Linux-6.1-x86_64",
    python="3.11.7",
    limits=(Limit(8 * 10**9, "cgroup v2"), Limit(64 * 10**9, "machine")),
    available_bytes=7 * 10**9,
    swap_bytes=0,
    shared_memory_bytes=64 * 10**6,
    overcommit=0,
    malloc="glibc 2.36",
    pressure=Pressure(0.5, 0.0),
    versions={"keras": "3.15.1", "torch": "2.13.0"},
    devices={"tensorflow": None, "torch": ("CPU:0", "GPU:0")},
    nvidia=(NvidiaMemory("NVIDIA A100", 10**9, 40 * 10**9),),
    settings={"XLA_FLAGS": "[red]--xla_cpu"},
)
RISK = Advice("small-shared-memory", True, "Shared memory has 64 MB.", "Give it more.")
FACT = Advice("no-swap", False, "There is no swap.", "Leave room.")
ALL_WELL = "No risks for training found."


def render(machine=MACHINE, advice=(), width=120):
    out = io.StringIO()
    render_machine(machine, advice, Console(file=out, width=width))
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("limit", "8.00 GB (cgroup v2), the lowest; 64.0 GB (machine)"),
        ("available", "7.00 GB"),
        ("swap", "none"),
        ("shared memory", "64.0 MB"),
        ("malloc", "glibc 2.36"),
        ("python", "3.11.7 on Linux-6.1-x86_64"),
        ("packages", "keras 3.15.1, torch 2.13.0"),
        ("tensorflow sees", "does not start"),
        ("torch sees", "CPU:0, GPU:0"),
        ("nvidia", "NVIDIA A100: 1.00 GB of 40.0 GB"),
        ("XLA_FLAGS", "[red]--xla_cpu"),
    ],
)
def test_each_fact_has_a_row(name, value):
    rows = [line.rstrip() for line in render().splitlines()]

    assert f"{name:17}{value}" in rows


def test_no_line_is_wider_than_80_columns():
    lines = render(advice=[RISK, FACT], width=80).splitlines()

    assert max(cell_len(line) for line in lines) <= 80


def test_advice_is_shown_with_what_to_do():
    lines = render(advice=[RISK, FACT]).splitlines()

    assert lines[-7:] == [
        "small-shared-memory (risk)".ljust(120),
        "Shared memory has 64 MB.",
        "→ Give it more.",
        " " * 120,
        "no-swap (good to know)".ljust(120),
        "There is no swap.",
        "→ Leave room.",
    ]


@pytest.mark.parametrize(("advice", "is_said"), [([], True), ([FACT], True), ([RISK, FACT], False)])
def test_all_is_well_is_said_only_where_there_is_no_risk(advice, is_said):
    assert (ALL_WELL in render(advice=advice)) is is_said


def test_json_holds_all_that_is_known_and_the_advice():
    plain = json.loads(render_machine_json(MACHINE, [RISK]))

    assert plain["limits"][0] == {"limit_bytes": 8 * 10**9, "source": "cgroup v2"}
    assert plain["devices"] == {"tensorflow": None, "torch": ["CPU:0", "GPU:0"]}
    assert plain["pressure"] == {"some_percent": 0.5, "full_percent": 0.0}
    assert plain["advice"] == [
        {
            "code": "small-shared-memory",
            "is_risk": True,
            "message": "Shared memory has 64 MB.",
            "action": "Give it more.",
        }
    ]
