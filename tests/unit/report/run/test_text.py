import io
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from rich.cells import cell_len
from rich.console import Console

from memfit.budget import Budget
from memfit.diagnose.causes.finding import Finding
from memfit.diagnose.diagnosis import Diagnosis, Run
from memfit.diagnose.growth.growth import Growth
from memfit.diagnose.growth.phases import Phase
from memfit.diagnose.growth.series import Point
from memfit.measure.limits import Limit
from memfit.record.recording import Recording
from memfit.record.samples import Exit, Header, Software, Trouble
from memfit.report.run.sentences import explain
from memfit.report.run.text import render_place, render_text

GROWTH = Growth(
    bytes_per_s=1e6,
    bytes_per_epoch=12e6,
    bytes_per_step=3e4,
    low_share=0.5,
    high_share=1.5,
    begin_t_s=0.0,
    end_t_s=60.0,
    num_intervals=6,
    unit="epoch",
)
IN_TIME = replace(GROWTH, bytes_per_epoch=None, unit="interval")
KILLED = Finding(
    "killed",
    "Killed by the kernel, out of memory in its control group at 1.98 GB of a 2.00 GB limit.",
    "certain",
    "Give it more memory, or lower the batch size or what the data holds in memory.",
)
WELL = Exit(60.0, code=0)
NEAR = Finding("near-limit", "Memory reached 95% of the limit.", "certain", "Raise the limit.")


HELD = Finding(
    "held-tensors",
    "losses (global of train.py) keeps arrays or tensors: a list that grew from 100 to 1,300 "
    "(EagerTensor of shape (256, 10)), 83.0 MB.",
    "certain",
    "Keep only what you need: float(...) of a loss, a mean, or the last few with "
    "collections.deque(maxlen=...); write the rest to disk.",
    file="train.py",
    line=14,
    before="losses.append(loss)",
    after="losses.append(float(loss))",
    growth_bytes=83_000_000,
    share=0.83,
    lint=("MF201", "MF203"),
    notes=(
        "gc.collect() ran 12 times (train.py:31), but memory still grew: the growth is "
        "held by a name, not garbage.",
    ),
)
CALM = Finding(
    "mapped-pages",
    "Pages of a file that is mapped came into memory; the kernel takes them back when it must.",
    "certain",
    "Nothing needs to be done.",
    is_problem=False,
)


def make_recording(command=("train.py",), ended=WELL, **fields):
    return Recording(
        "20260101-120000-train",
        header=Header(0.0, 1, "supervisor", 1, 1e9, command=command),
        exit=ended,
        end_t_s=5025.0,
        **fields,
    )


def make_points(count):
    return tuple(
        Point(1000.0 + at, 10**9 + at * 10**7, 9 * 10**8 + at * 10**7) for at in range(count)
    )


def render(recording, diagnosis, width=80):
    out = io.StringIO()
    render_text(Run(recording, diagnosis), Console(file=out, width=width))
    return out.getvalue()


def flat(text):
    """The text with its lines joined, as wrapping is not what is tested."""
    return " ".join(text.split())


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width):
    recording = make_recording(
        command=("/a/very/long/path" * 8 + "/train.py", "--data", "x" * 100),
        software=Software(1.0, "tensorflow", {"keras": "3.15.1", "tensorflow": "2.21.0"}),
        troubles=(Trouble(20.0, "Recorder.sample", "OSError: " + "no such file " * 20),),
        notes=("agent-7.jsonl: 1 damaged line was skipped; the rest was read.",),
    )
    diagnosis = Diagnosis(
        "killed",
        peak_bytes=1_980_000_000,
        limit=Limit(2 * 10**9, "cgroup v2"),
        growth=GROWTH,
        phases=(Phase("train_on_batch", 1, 0.0, 3000.0, calls=123_456_789),),
        findings=(KILLED, NEAR, replace(HELD, before="x = " + "y" * 300), CALM),
        points=make_points(300),
    )

    lines = render(recording, diagnosis, width).splitlines()

    assert max(cell_len(line) for line in lines) <= width


@pytest.mark.parametrize(
    ("diagnosis", "ended", "sentence"),
    [
        (Diagnosis("steady"), WELL, "Memory is steady."),
        (Diagnosis("growing", growth=GROWTH), WELL, "Memory grows by 12.0 MB/epoch."),
        (Diagnosis("near_limit", findings=(NEAR,)), WELL, NEAR.message),
        (
            Diagnosis("killed", findings=(KILLED, NEAR)),
            Exit(60.0, signal="SIGKILL"),
            KILLED.message,
        ),
        (Diagnosis("failed"), Exit(60.0, code=1), "The script failed: exit code 1."),
        (Diagnosis("failed"), Exit(60.0, signal="SIGSEGV"), "The script failed: ended by SIGSEGV."),
        (
            Diagnosis("unknown", why_unknown="1 epoch and 2 s were seen."),
            None,
            "Cannot tell whether memory grows: 1 epoch and 2 s were seen.",
        ),
    ],
    ids=lambda value: value.verdict if isinstance(value, Diagnosis) else None,
)
def test_the_verdict_is_said_in_the_first_sentence(diagnosis, ended, sentence):
    text = render(make_recording(ended=ended), diagnosis, width=200)

    assert text.splitlines()[1] == sentence


def test_what_ran_is_said_with_its_time_and_versions():
    recording = make_recording(
        command=("train.py", "--epochs", "20"),
        software=Software(1.0, "jax", {"keras": "3.15.1", "jax": "0.10.2", "numpy": "2.4.6"}),
    )

    title = render(recording, Diagnosis("steady")).splitlines()[0]

    assert title == "memfit · train.py --epochs 20 · 1 h 24 min · keras 3.15.1 · jax 0.10.2"


@pytest.mark.parametrize("name", ["[red]x", "[/]x.py", "[link=file:///etc]x", ":boom:.py"])
def test_markup_in_a_scripts_name_is_shown_as_it_is(name):
    assert name in render(make_recording(command=(name,)), Diagnosis("steady"))


def test_a_scripts_name_that_is_not_utf_8_does_not_end_the_report():
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    name = b"tr\xffain.py".decode("utf-8", "surrogateescape")

    run = Run(make_recording(command=(name,)), Diagnosis("steady"))
    render_text(run, Console(file=terminal))

    terminal.flush()
    assert b"Memory is steady." in terminal.buffer.getvalue()


@pytest.mark.parametrize(
    ("diagnosis", "ended", "sentences"),
    [
        (Diagnosis("unknown"), WELL, ["No memory was measured."]),
        (
            Diagnosis("steady", peak_bytes=5 * 10**8),
            WELL,
            ["Peak 500 MB; the limit is unknown."],
        ),
        (
            Diagnosis("steady", peak_bytes=5 * 10**8, limit=Limit(2 * 10**9, "rlimit as")),
            Exit(60.0, signal="SIGTERM"),
            [
                "Peak 500 MB, 25% of the 2.00 GB limit (rlimit as).",
                "The script was ended by SIGTERM.",
            ],
        ),
        (
            Diagnosis("steady", peak_bytes=5 * 10**8),
            None,
            [
                "Peak 500 MB; the limit is unknown.",
                "memfit did not see it end: it is still running, or memfit stopped first.",
            ],
        ),
        (
            Diagnosis("growing", growth=GROWTH, projected_exhaustion_s=600.0, peak_bytes=5 * 10**8),
            WELL,
            [
                "Measured over 6 epochs; between 6.00 MB and 18.0 MB per epoch (90% confidence).",
                "At this rate memory runs out in 50 epochs, about 10 min 0 s.",
                "Peak 500 MB; the limit is unknown.",
            ],
        ),
        (
            Diagnosis(
                "growing", growth=IN_TIME, projected_exhaustion_s=600.0, peak_bytes=5 * 10**8
            ),
            WELL,
            [
                "Measured over 6 intervals; between 500 kB and 1.50 MB per second "
                "(90% confidence).",
                "At this rate memory runs out in about 10 min 0 s.",
                "Peak 500 MB; the limit is unknown.",
            ],
        ),
        (
            Diagnosis("failed", growth=GROWTH, peak_bytes=5 * 10**8),
            Exit(60.0, code=1),
            [
                "It was growing by 12.0 MB/epoch.",
                "Measured over 6 epochs; between 6.00 MB and 18.0 MB per epoch (90% confidence).",
                "Peak 500 MB; the limit is unknown.",
            ],
        ),
    ],
    ids=["unmeasured", "no limit", "ended", "running", "growing", "growing in time", "failed"],
)
def test_what_the_verdict_means_is_explained_a_sentence_each(diagnosis, ended, sentences):
    assert explain(Run(make_recording(ended=ended), diagnosis)) == sentences


@pytest.mark.parametrize(
    ("peak_mb", "phases", "told"),
    [
        (500, (Phase("fit", 1, 0.0, 9.0),), "The budget of 600 MB was kept."),
        (650, (Phase("fit", 1, 0.0, 9.0),), "The budget of 600 MB was exceeded by 50.0 MB."),
        (
            500,
            (),
            "The budget of 600 MB had no effect: it is for model.fit, which this script did not "
            "call.",
        ),
    ],
    ids=["kept", "passed", "no fit"],
)
def test_what_became_of_a_budget_is_reported(peak_mb, phases, told):
    recording = make_recording(ended=Exit(60.0, code=0))
    recording = replace(
        recording, header=structs.replace(recording.header, budget=Budget(600 * 10**6))
    )

    assert told in explain(
        Run(recording, Diagnosis("steady", peak_bytes=peak_mb * 10**6, phases=phases))
    )


@pytest.mark.parametrize("place", ["host", "device"])
def test_a_fit_that_a_budget_does_not_control_is_told_in_capitals_and_is_a_problem(place):
    recording = make_recording(ended=Exit(60.0, code=0))
    recording = replace(
        recording, header=structs.replace(recording.header, budget=Budget(600 * 10**6, place))
    )
    diagnosis = Diagnosis("steady", peak_bytes=10**8, uncontrolled=("It makes its own step.",))

    assert (
        "THE BUDGET OF 600 MB DID NOT CONTROL ONE CALL OF FIT: It makes its own step."
    ) in explain(Run(recording, diagnosis))
    assert diagnosis.has_problem


def test_the_explanation_follows_the_verdict():
    diagnosis = Diagnosis("steady", peak_bytes=5 * 10**8)

    lines = render(make_recording(ended=Exit(60.0, signal="SIGTERM")), diagnosis).splitlines()

    assert lines[2:] == ["Peak 500 MB; the limit is unknown.", "The script was ended by SIGTERM."]


def test_phases_of_one_kind_are_one_row_with_their_sums():
    phases = (
        Phase("predict", 1, 0.0, 60.0, calls=1200, peak_bytes=10**9, change_bytes=5_000_000),
        Phase("predict", 2, 80.0, 110.0, calls=34, peak_bytes=2 * 10**9, change_bytes=-1_000_000),
    )

    text = render(make_recording(), Diagnosis("steady", phases=phases))

    rows = [line.split() for line in text.splitlines() if line.startswith("predict")]
    assert rows == [["predict", "1,234", "1", "min", "30", "s", "2.00", "GB", "+4.00", "MB"]]


def test_a_phase_too_short_to_be_measured_shows_that_it_is_not_known():
    phases = (Phase("evaluate", 1, 0.0, 0.1),)

    text = render(make_recording(), Diagnosis("steady", phases=phases))

    rows = [line.split() for line in text.splitlines() if line.startswith("evaluate")]
    assert rows == [["evaluate", "1", "100", "ms", "?", "?"]]


def test_a_finding_is_shown_with_its_place_confidence_and_remedy():
    finding = Finding("leak", "A list grows.", "likely", "Empty it.", file="train.py", line=12)

    text = render(make_recording(), Diagnosis("steady", findings=(finding,)))

    lines = [line.rstrip() for line in text.splitlines()]
    assert lines[-3:] == ["leak train.py:12 (likely)", "A list grows.", "→ Empty it."]


def lines_of(*findings, width=80, **changes):
    diagnosis = Diagnosis("growing", growth=GROWTH, findings=findings, **changes)
    return [line.rstrip() for line in render(make_recording(), diagnosis, width).splitlines()]


def test_a_finding_reads_well_in_80_columns():
    lines = lines_of(HELD)

    assert lines[lines.index("held-tensors train.py:14 (certain) · 83% of the growth") :] == [
        "held-tensors train.py:14 (certain) · 83% of the growth",
        "losses (global of train.py) keeps arrays or tensors: a list that grew from 100",
        "to 1,300 (EagerTensor of shape (256, 10)), 83.0 MB.",
        "- losses.append(loss)",
        "+ losses.append(float(loss))",
        "→ Keep only what you need: float(...) of a loss, a mean, or the last few with",
        "  collections.deque(maxlen=...); write the rest to disk.",
        "· gc.collect() ran 12 times (train.py:31), but memory still grew: the growth is",
        "  held by a name, not garbage.",
        "`memfit lint` catches this: MF201, MF203",
    ]


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("gc.disable()", "", ["- gc.disable()"]),
        ("tapes.append(tape)", None, ["  tapes.append(tape)"]),
        (None, None, []),
        (
            "if x:\n    y += z",
            "if x:\n    y = z",
            ["- if x:", "-     y += z", "+ if x:", "+     y = z"],
        ),
        ("x = [0]  # [red]", None, ["  x = [0]  # [red]"]),
    ],
)
def test_a_statement_is_shown_as_a_diff_where_it_can_be_fixed(before, after, shown):
    finding = replace(HELD, message="It grows.", before=before, after=after, fix="Let go.")

    lines = lines_of(finding)

    assert lines[lines.index("It grows.") + 1 : lines.index("→ Let go.")] == shown


def test_what_is_taken_out_is_red_and_what_is_put_in_is_green():
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system="standard")

    render_text(Run(make_recording(), Diagnosis("steady", findings=(HELD,))), console)

    assert "\x1b[31mlosses.append(loss)" in out.getvalue()
    assert "\x1b[32mlosses.append(float(loss))" in out.getvalue()


@pytest.mark.parametrize(
    ("share", "ending"),
    [(None, "(certain)"), (0.004, "· under 1% of the growth"), (1.0, "· 100% of the growth")],
)
def test_the_share_of_the_growth_is_shown_where_it_is_known(share, ending):
    (label,) = [line for line in lines_of(replace(HELD, share=share)) if line[:12] == HELD.code]

    assert label.endswith(ending)


@pytest.mark.parametrize(
    ("share", "ending"),
    [
        (0.4, "· the part that no other cause explains; not measured in bytes"),
        (1.0, "· no other cause found; not measured in bytes"),
    ],
)
def test_a_share_that_others_leave_is_not_reported_as_a_measured_one(share, ending):
    finding = replace(HELD, share=share, share_is_rest=True)

    told = " ".join(lines_of(finding))

    assert f"{HELD.code} train.py:14 (certain) {ending}" in told
    assert "share" not in told


def test_a_finding_without_a_line_shows_its_file():
    assert "held-tensors train.py (certain)" in lines_of(replace(HELD, line=None, share=None))


def test_what_is_no_problem_stands_last_under_a_heading_of_its_own():
    lines = lines_of(CALM, HELD)

    assert lines[-7:] == [
        "`memfit lint` catches this: MF201, MF203",
        "",
        "note",
        "mapped-pages (certain)",
        "Pages of a file that is mapped came into memory; the kernel takes them back when",
        "it must.",
        "→ Nothing needs to be done.",
    ]


def test_a_file_name_that_is_not_utf_8_can_stand_in_a_finding():
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    name = b"tr\xffain.py".decode("utf-8", "surrogateescape")
    finding = replace(HELD, file=name, message=name, before=name, fix=name, notes=(name,))

    diagnosis = Diagnosis("steady", findings=(finding, replace(finding, is_problem=False)))
    render_text(Run(make_recording(), diagnosis), Console(file=terminal))

    terminal.flush()
    assert b"tr?ain.py" in terminal.buffer.getvalue()


def test_what_the_first_sentence_said_is_not_said_again_below():
    text = render(make_recording(), Diagnosis("near_limit", findings=(NEAR,)))

    assert text.count(NEAR.message) == 1


def test_errors_inside_memfit_are_noted_with_the_first_of_them():
    troubles = tuple(Trouble(float(at), "Recorder.sample", f"OSError: {at}") for at in range(3))

    text = flat(render(make_recording(troubles=troubles), Diagnosis("steady")))

    assert "note: 3 errors inside memfit, the first in Recorder.sample (OSError: 0)." in text


def test_the_chart_rises_where_memory_does():
    rows = chart_rows(make_points(70))

    heights = [sum(row[column] != " " for row in rows) for column in range(70)]
    assert heights == sorted(heights)
    assert (heights[0], heights[-1]) == (1, 6)


def test_the_chart_of_a_short_peak_shows_it():
    points = [replace(point, rss_bytes=10**9) for point in make_points(200)]
    points[100] = replace(points[100], rss_bytes=2 * 10**9)

    top_row = chart_rows(points)[0]

    assert top_row == " " * 35 + "█" + " " * 34


@pytest.mark.parametrize(
    ("first_bytes", "last_bytes", "labels"),
    [
        (4 * 10**8, 10**9, ("1.00 GB", "0 B")),
        (6 * 10**8, 10**9, ("1.00 GB", "560 MB")),
        (10**9, 10**9, ("1.00 GB", "990 MB")),
    ],
    ids=["much of it", "the upper part", "flat"],
)
def test_the_chart_begins_at_zero_unless_all_happens_in_its_upper_part(
    first_bytes, last_bytes, labels
):
    points = (Point(1000.0, first_bytes, 1), Point(1060.0, last_bytes, 1))

    lines = chart_lines(points)

    assert (lines[0][:9].strip(), lines[-2][:9].strip()) == labels


def test_the_axis_of_the_chart_counts_from_the_beginning_of_the_run():
    axis = chart_lines(make_points(61), begin_t_s=970.0)[-1]

    assert axis == "      RSS 30 s" + "1 min 30 s".rjust(66)


def chart_rows(points):
    """The six rows of blocks of a chart that is 80 wide, without their labels."""
    return [line[10:].ljust(70) for line in chart_lines(points)[:-1]]


def chart_lines(points, **fields):
    """The six rows of a chart that is 80 wide and its axis."""
    text = render(make_recording(**fields), Diagnosis("steady", points=tuple(points)))
    lines = text.splitlines()
    axis = next(at for at, line in enumerate(lines) if line.startswith("      RSS"))
    return lines[axis - 6 : axis + 1]


def test_one_reading_makes_no_chart():
    assert "RSS" not in render(make_recording(), Diagnosis("steady", points=make_points(1)))


@pytest.mark.parametrize("width", [1, 9, 10, 11])
def test_a_terminal_narrower_than_the_labels_of_the_chart_does_no_harm(width):
    text = render(make_recording(), Diagnosis("steady", points=make_points(5)), width)

    assert "steady" in text.replace("\n", "")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a", ["recorded in memfit-runs/a · open it with: memfit report"]),
        (
            "20260301-123000-train_model",
            [
                "recorded in memfit-runs/20260301-123000-train_model",
                "open it with: memfit report",
            ],
        ),
        ("x" * 90, [f"recorded in memfit-runs/{'x' * 90}", "open it with: memfit report"]),
    ],
)
def test_neither_the_place_of_a_run_nor_the_command_that_shows_it_is_broken_in_two(name, told):
    out = io.StringIO()

    render_place(Path("memfit-runs", name), Console(file=out, width=70))

    assert out.getvalue().splitlines() == told
