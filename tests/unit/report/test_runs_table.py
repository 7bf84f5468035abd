import io
import time

import pytest
from rich.cells import cell_len
from rich.console import Console

from memfit.diagnose.diagnosis import Diagnosis, Run
from memfit.diagnose.growth.growth import Growth
from memfit.record.recording import Recording
from memfit.record.samples import Header
from memfit.report.runs_table import render_runs

BEGUN_S = time.mktime((2026, 3, 1, 12, 30, 0, 0, 0, -1))
GROWTH = Growth(
    bytes_per_s=1e6,
    bytes_per_epoch=None,
    bytes_per_step=2e5,
    low_share=0.9,
    high_share=1.1,
    begin_t_s=0.0,
    end_t_s=60.0,
    num_intervals=6,
    unit="interval",
)


def make_recording(name="20260301-123000-train"):
    header = Header(0.0, 1, "supervisor", 1, BEGUN_S)
    return Recording(name, header=header, end_t_s=90.0)


def render(*results, width=120):
    out = io.StringIO()
    render_runs([Run(*one) for one in results], Console(file=out, width=width))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_run_is_a_row_with_its_figures():
    diagnosis = Diagnosis("growing", peak_bytes=1_310_000_000, growth=GROWTH)

    _, row = render((make_recording(), diagnosis))

    assert row.split("  ") == [
        "20260301-123000-train",
        "2026-03-01 12:30",
        "1 min 30 s",
        "1.31 GB",
        "1.00 MB/s",
        "growing",
    ]


def test_every_column_has_a_name():
    (names,) = render()

    assert names.split() == ["run", "begun", "time", "peak", "growth", "verdict"]


def test_what_is_not_known_of_a_run_is_shown_as_such():
    _, row = render((Recording("cut"), Diagnosis("unknown")))

    assert row.split() == ["cut", "?", "0", "ms", "?", "unknown"]


def test_runs_are_shown_in_the_order_given():
    results = [(make_recording(name), Diagnosis("steady")) for name in ("b", "c", "a")]

    _, *rows = render(*results)

    assert [row[0] for row in rows] == ["b", "c", "a"]


@pytest.mark.parametrize("name", ["[red]x", "[/]", ":boom:"])
def test_markup_in_the_name_of_a_run_is_shown_as_it_is(name):
    _, row = render((make_recording(name), Diagnosis("steady")))

    assert row.startswith(f"{name} ")


@pytest.mark.parametrize(
    ("script", "names"),
    [
        ("train", ["run", "time", "peak", "growth", "verdict"]),
        ("train_the_second_model", ["run", "peak", "growth", "verdict"]),
        ("x" * 45, ["run", "verdict"]),
        ("x" * 60, ["run", "verdict"]),
    ],
)
def test_a_name_stays_whole_at_80_columns_and_others_are_left_out(script, names):
    name = f"20260301-123000-{script}"
    diagnosis = Diagnosis("near_limit", peak_bytes=1_310_000_000, growth=GROWTH)

    head, row = render((make_recording(name), diagnosis), width=80)

    assert head.split() == names
    assert row.startswith(f"{name} ")
    assert row.endswith("near_limit")
    assert cell_len(row) <= 80 or len(script) == 60
