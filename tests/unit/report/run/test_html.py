"""The HTML page: what it says, that nothing in a recording can break out of it, that it draws."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser

import pytest
from msgspec import structs
from plotly.offline import get_plotlyjs

from memfit.backends.devices import DeviceMemory
from memfit.diagnose.causes.finding import Finding
from memfit.diagnose.diagnosis import Diagnosis, Run, diagnose
from memfit.diagnose.growth.growth import Growth
from memfit.diagnose.growth.phases import Phase
from memfit.measure.limits import Limit
from memfit.measure.malloc import AllocatorMemory
from memfit.measure.nvidia import NvidiaMemory
from memfit.measure.process import ChildMemory, ProcessMemory, ProportionalMemory
from memfit.record.recording import Recording
from memfit.record.samples import Exit, Header, Mark, Sample, Software, StepProgress, Trouble
from memfit.report.run.chart import Chart, build_chart
from memfit.report.run.chart_curves import Curve, thin_curve
from memfit.report.run.html import render_html

MB = 10**6
GB = 10**9
BEGIN_T_S = 5000.0
HOSTILE = "</script><img src=x onerror=alert(1)>"
# A recording read on another machine can hold a name that no encoding there knows.
NOT_UTF_8 = "train\udcff.py"


def make_header(**changes):
    known = Header(
        format=1,
        role="supervisor",
        pid=7,
        t_s=BEGIN_T_S,
        wall_time_s=1.7e9,
        memfit="0.1.0",
        python="3.12.4",
        platform="Linux x86_64",
        command=("python", "train.py"),
        limit=Limit(4 * GB, "cgroup v2"),
        settings={"MALLOC_ARENA_MAX": "2"},
    )
    return structs.replace(known, **changes)


def seen_outside(at_s, rss_bytes, **more):
    memory = ProcessMemory(rss_bytes=rss_bytes, anonymous_bytes=max(rss_bytes - 100 * MB, 0))
    return Sample(t_s=BEGIN_T_S + at_s, pid=7, process=memory, **{"children": (), **more})


def seen_inside(at_s, rss_bytes, **more):
    return structs.replace(seen_outside(at_s, rss_bytes), children=None, **more)


def mark(at_s, event, phase, number=1, calls=1):
    return Mark(BEGIN_T_S + at_s, event, phase, number, calls)


def marks_of_fit(num_epochs, *, begin_s=1.0, epoch_s=1.0, number=1, has_validation=False):
    marks = [mark(begin_s, "begin", "fit", number)]
    for epoch in range(num_epochs):
        at_s = begin_s + epoch * epoch_s
        marks.append(mark(at_s, "begin", "epoch", epoch + 1))
        if has_validation:
            marks.append(mark(at_s + 0.6 * epoch_s, "begin", "validation", epoch + 1))
            marks.append(mark(at_s + 0.8 * epoch_s, "end", "validation", epoch + 1))
        marks.append(mark(at_s + 0.9 * epoch_s, "end", "epoch", epoch + 1))
    return [*marks, mark(begin_s + num_epochs * epoch_s, "end", "fit", number)]


def make_recording(outside=(), inside=(), marks=(), **more):
    """A run that ended well, from `BEGIN_T_S` to its last entry."""
    entries = (*outside, *inside, *marks)
    defaults = {
        "name": "run-1",
        "header": make_header(),
        "exit": Exit(BEGIN_T_S, code=0),
        "begin_t_s": BEGIN_T_S,
        "end_t_s": max((entry.t_s for entry in entries), default=BEGIN_T_S),
    }
    return Recording(
        outside=tuple(outside), inside=tuple(inside), marks=tuple(marks), **{**defaults, **more}
    )


def make_growing(num_epochs=20, per_epoch_bytes=10 * MB, **more):
    """A fit of one second an epoch, read four times a second."""
    rss_bytes = [500 * MB + per_epoch_bytes * at // 4 for at in range(4 * (num_epochs + 2))]
    outside = [seen_outside(at / 4, size_bytes) for at, size_bytes in enumerate(rss_bytes)]
    return make_recording(outside, marks=marks_of_fit(num_epochs), **more)


def make_hostile():
    """A run in which every text of the recording tries to become markup."""
    sample = seen_outside(1, 600 * MB, nvidia=(NvidiaMemory(HOSTILE, GB, 40 * GB),))
    device = DeviceMemory(HOSTILE, 2 * GB)
    header = make_header(
        command=("python", HOSTILE),
        limit=Limit(4 * GB, HOSTILE),
        memfit=HOSTILE,
        python=HOSTILE,
        platform=HOSTILE,
        settings={HOSTILE: HOSTILE},
    )
    return make_recording(
        outside=[seen_outside(0, 500 * MB), sample],
        inside=[seen_inside(1, 600 * MB, devices=(device,))],
        marks=[mark(0, "begin", "fit"), mark(0.2, "begin", HOSTILE), mark(0.8, "end", HOSTILE)],
        name=HOSTILE,
        header=header,
        software=Software(BEGIN_T_S, HOSTILE, {HOSTILE: HOSTILE}, HOSTILE),
        exit=Exit(BEGIN_T_S + 1, signal=HOSTILE),
        troubles=(Trouble(BEGIN_T_S, HOSTILE, HOSTILE),),
        notes=(HOSTILE,),
    )


def make_finding(**changes):
    known = Finding(code="held", message="It holds.", confidence="likely", fix="Let go.")
    return replace(known, **changes)


def render(recording, **changes):
    return render_html(Run(recording, replace(diagnose(recording), **changes)))


def chart_of(recording, **changes) -> Chart:
    chart = build_chart(Run(recording, replace(diagnose(recording), **changes)))
    assert chart is not None
    return chart


def traces_of(chart, role):
    return [trace for trace in chart.figure["data"] if trace["meta"] == role]


def parts_of(chart, kind, name):
    return [part for part in chart.figure["layout"][kind] if part["name"] == name]


@dataclass
class Page(HTMLParser):
    """What a browser would see: elements with their attributes, texts, and script contents."""

    text: str
    elements: list = field(default_factory=list)
    texts: list = field(default_factory=list)
    scripts: list = field(default_factory=list)

    def __post_init__(self):
        super().__init__()
        self._inside = ""
        self.feed(self.text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.texts.append(data)

    def all_of(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def said(self):
        return " ".join(" ".join(self.texts).split())


# What it says


def test_the_verdict_is_the_first_heading_and_in_the_title():
    page = Page(render(make_growing(), findings=()))

    assert page.said.startswith("Memory grows by 10.0 MB/epoch. · memfit")
    assert page.said.count("Memory grows by 10.0 MB/epoch.") == 2
    assert [tag for tag, _ in page.elements if tag in ("h1", "h2", "h3")] == [
        "h1",
        "h2",
        "h2",
        "h2",
    ]


def test_duration_command_and_backend_stand_below_the_verdict():
    software = Software(BEGIN_T_S, "jax", {"jax": "0.7.0", "keras": "3.11.0"}, "glibc 2.36")

    page = Page(render(make_growing(software=software)))

    assert "Command python train.py Duration 22 s Backend jax 0.7.0, keras 3.11.0" in page.said


def test_a_finding_shows_where_it_is_and_what_to_do():
    finding = make_finding(file="train.py", line=12)

    page = Page(render(make_growing(), findings=(finding,)))

    assert "held likely It holds. train.py:12 What to do: Let go." in page.said


def test_a_finding_shows_its_share_its_statement_fixed_its_notes_and_its_hints():
    finding = make_finding(
        share=0.83,
        before="losses.append(loss)",
        after="losses.append(float(loss))",
        notes=("gc.collect() did not help.",),
        lint=("MF201",),
    )

    page = Page(render(make_growing(), findings=(finding,)))

    assert (
        "held likely 83% of the growth It holds. - losses.append(loss) "
        "+ losses.append(float(loss)) What to do: Let go. gc.collect() did not help. "
        "`memfit lint` catches this: MF201"
    ) in page.said


def test_a_share_that_others_leave_is_reported_in_words_and_not_as_a_field():
    finding = make_finding(share=1.0, share_is_rest=True)

    page = Page(render(make_growing(), findings=(finding,)))

    assert "held likely no other cause found; not measured in bytes It holds." in page.said
    assert "share is rest" not in page.said


@pytest.mark.parametrize(
    ("before", "after", "markup"),
    [
        ("gc.disable()", "", "<code><del>- gc.disable()</del>\n</code>"),
        ("f(tape)", None, "<code>f(tape)</code>"),
        ("x += y", "x = y", "<code><del>- x += y</del>\n<ins>+ x = y</ins>\n</code>"),
        (
            "if x:\n    y()",
            "if x:\n    z()",
            "<code><del>- if x:</del>\n<del>-     y()</del>\n"
            "<ins>+ if x:</ins>\n<ins>+     z()</ins>\n</code>",
        ),
    ],
)
def test_a_statement_is_a_diff_that_keeps_its_spaces(before, after, markup):
    text = render(make_growing(), findings=(make_finding(before=before, after=after),))

    assert f'<pre class="change">{markup}</pre>' in text


def test_what_is_no_problem_stands_under_a_heading_of_its_own():
    calm = make_finding(code="mapped", message="Pages came in.", is_problem=False)

    page = Page(render(make_growing(), findings=(calm, make_finding())))

    assert page.said.index("Findings held likely") < page.said.index("Notes mapped likely")
    assert page.all_of("article") == [{}, {"class": "calm"}]


def test_evidence_is_shown_in_the_unit_of_its_name():
    evidence = {"peak_held_bytes": 1_310_000_000, "seen_s": 90.0, "num_calls": 1200, "who": None}

    page = Page(render(make_growing(), findings=(make_finding(evidence=evidence),)))

    assert "peak held 1.31 GB seen 1 min 30 s num calls 1,200 who unknown" in page.said


def test_what_the_headline_says_is_not_said_again_in_the_finding():
    exit_ = Exit(BEGIN_T_S + 21.75, signal="SIGKILL", group_oom_kills=1)
    recording = make_growing(exit=exit_)
    killed = diagnose(recording).findings[0]

    page = Page(render(recording))

    assert sum(killed.message in text for text in page.texts) == 2  # title and heading


def test_overhead_is_a_share_of_the_wall_time():
    recording = make_recording(
        outside=[seen_outside(0, GB), seen_outside(100, GB)],
        inside=[seen_inside(99, GB, probe_s=0.5)],
    )

    assert "500 ms of 1 min 40 s (0.50%)" in Page(render(recording)).said


def test_an_error_inside_memfit_is_reported_once_and_that_training_went_on():
    trouble = Trouble(BEGIN_T_S, "hooks", "KeyError: 'x'")

    page = Page(render(make_growing(troubles=(trouble,) * 3, notes=("1 line was skipped.",))))

    told = (
        "1 line was skipped. memfit itself had an error in hooks, 3 times; the training continued:"
    )
    assert f"{told} KeyError: 'x'" in page.said


def test_a_higher_mark_of_the_kernel_is_reported_below_the_chart():
    recording = make_growing(exit=Exit(BEGIN_T_S, code=0, peak_rss_bytes=3 * GB))

    assert "a higher peak than any sample: 3.00 GB" in Page(render(recording)).said


def test_the_page_is_a_function_of_its_values():
    assert render(make_growing()) == render(make_growing())


def test_every_header_of_a_table_says_what_it_heads():
    page = Page(render(make_growing()))

    assert {attributes.get("scope") for attributes in page.all_of("th")} == {"col", "row"}


def test_the_chart_has_the_verdict_as_its_text():
    page = Page(render(make_growing()))

    (chart,) = [attributes for attributes in page.all_of("div") if attributes.get("id") == "chart"]
    assert "Memory grows by 10.0 MB/epoch." in chart["aria-label"]
    assert page.all_of("noscript")


# Phases


def test_epochs_are_folded_and_their_middle_is_left_out():
    page = Page(render(make_growing(num_epochs=1000)))

    assert len(page.all_of("details")) == 1
    assert "open" not in page.all_of("details")[0]
    assert "fit 1: 1,000 epochs" in page.said
    assert "epoch 20 " in page.said
    assert "960 epochs left out" in page.said
    assert "epoch 981 " in page.said
    assert "epoch 21 " not in page.said
    assert "epoch 980 " not in page.said


def test_forty_epochs_are_all_shown():
    page = Page(render(make_growing(num_epochs=40)))

    assert "left out" not in page.said


def test_the_middle_of_many_fits_is_left_out():
    marks = [one for at in range(100) for one in marks_of_fit(1, begin_s=2.0 * at, number=at + 1)]
    recording = make_recording([seen_outside(at, GB) for at in range(201)], marks=marks)

    page = Page(render(recording))

    assert "60 phases left out" in page.said
    assert len(page.all_of("details")) == 40


def test_validation_stands_below_its_epoch():
    recording = make_recording(
        [seen_outside(at / 4, GB) for at in range(16)], marks=marks_of_fit(2, has_validation=True)
    )

    rows = re.findall(r'<tr( class="inner")?>\s*<th scope="row">(\w+ \d)<', render(recording))

    assert rows == [
        ("", "fit 1"),
        ("", "epoch 1"),
        (' class="inner"', "validation 1"),
        ("", "epoch 2"),
        (' class="inner"', "validation 2"),
    ]


def test_what_a_callback_runs_between_epochs_does_not_count_as_an_epoch():
    marks = []
    for at in range(100):
        marks += [mark(at, "begin", "epoch", at + 1), mark(at + 0.5, "end", "epoch", at + 1)]
        marks += [
            mark(at + 0.6, "begin", "predict", at + 1),
            mark(at + 0.9, "end", "predict", at + 1),
        ]
    marks = [mark(0, "begin", "fit"), *marks, mark(100, "end", "fit")]

    page = Page(render(make_recording([seen_outside(at, GB) for at in range(101)], marks=marks)))

    assert "fit 1: 100 epochs" in page.said
    assert "60 epochs left out epoch 81 " in page.said
    assert "predict 20 " in page.said
    assert "predict 21 " not in page.said


def test_a_fold_without_epochs_says_what_it_holds():
    marks = [mark(0, "begin", "evaluate"), mark(1, "begin", "predict"), mark(2, "end", "predict")]

    page = Page(render(make_recording([seen_outside(0, GB), seen_outside(3, GB)], marks=marks)))

    assert "evaluate 1: what ran inside" in page.said


def test_a_phase_that_did_not_end_says_so():
    marks = [mark(0, "begin", "fit")]

    page = Page(render(make_recording([seen_outside(0, GB), seen_outside(3, GB)], marks=marks)))

    assert "fit 1 did not end 1.00 GB 0 B 3.0 s 0 ms 1" in page.said


# Untrusted text


def test_hostile_text_stays_text_everywhere():
    finding = Finding(HOSTILE, HOSTILE, HOSTILE, HOSTILE, {HOSTILE: HOSTILE}, HOSTILE, 1)
    finding = replace(
        finding, before=HOSTILE, after=HOSTILE, lint=(HOSTILE,), notes=(HOSTILE,), share=0.5
    )
    calm = replace(finding, is_problem=False, after=None)

    page = Page(render(make_hostile(), findings=(finding, calm)))

    assert not page.all_of("img")
    assert not [name for _, attributes in page.elements for name in attributes if name[:2] == "on"]
    assert len(page.scripts) == 3
    assert page.said.count(HOSTILE) > 15


def test_the_data_of_the_chart_cannot_end_its_element():
    recording = make_hostile()

    data = Page(render(recording)).scripts[0]

    assert not re.search("[<>&\u2028\u2029]", data)
    assert json.loads(data) == json.loads(json.dumps(chart_of(recording).figure))


def test_line_separators_are_escaped_in_the_data_of_the_chart():
    device = DeviceMemory("GPU\u2028\u2029", GB)

    data = Page(render(make_recording(inside=[seen_inside(0, GB, devices=(device,))]))).scripts[0]

    assert r"GPU\u2028\u2029" in data


def test_plotly_is_given_names_that_it_cannot_take_for_markup():
    device = DeviceMemory('<a href="https://example.com">GPU</a>', GB)
    recording = make_recording(inside=[seen_inside(0, GB, devices=(device,))])

    (trace,) = traces_of(chart_of(recording), "device-1")

    assert trace["name"] == '&lt;a href="https://example.com"&gt;GPU&lt;/a&gt;, in tensors'


def test_the_policy_allows_the_scripts_of_the_page_and_nothing_from_elsewhere():
    page = Page(render(make_hostile()))

    (policy,) = [one["content"] for one in page.all_of("meta") if "http-equiv" in one]
    hashes = [
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in page.scripts[1:]
    ]
    assert policy.startswith("default-src 'none';")
    assert policy.partition("script-src ")[2].split() == hashes


def test_nothing_is_loaded_from_elsewhere():
    text = render(make_hostile()).replace(get_plotlyjs(), "")

    page = Page(text)

    loading = {"src", "href", "srcset", "data", "poster", "action", "background"}
    assert not [one for _, attributes in page.elements for one in loading & attributes.keys()]
    assert not page.all_of("link")
    assert not re.search(r"https?://|@import|url\(", text)


def test_a_name_that_is_not_utf_8_can_be_written():
    recording = make_growing(header=make_header(command=("python", NOT_UTF_8)))

    assert b"train?.py" in render(recording).encode()


# The chart


def test_thinning_keeps_the_most_the_least_and_the_ends():
    sizes = [1000 + at % 7 for at in range(100_000)]
    sizes[50_001], sizes[77_777] = 5000, 1
    curve = Curve("RSS", "rss", tuple(float(at) for at in range(100_000)), tuple(sizes))

    thin = thin_curve(curve)

    assert len(thin.t_s) == len(thin.size_bytes) <= 2000
    kept = list(zip(thin.t_s, thin.size_bytes, strict=True))
    assert kept == sorted(kept)
    assert {(50_001.0, 5000), (77_777.0, 1), (0.0, sizes[0]), (99_999.0, sizes[-1])} <= set(kept)


def test_a_short_curve_is_left_as_it_is():
    curve = Curve("RSS", "rss", (0.0, 1.0), (5, 6))

    assert thin_curve(curve) is curve


def test_a_day_of_samples_makes_a_page_of_less_than_a_megabyte():
    outside = [seen_outside(at, GB + at * 100 + at % 13 * MB) for at in range(86_400)]
    recording = make_recording(outside, marks=marks_of_fit(5000, epoch_s=17.0))

    text = render(recording)

    assert len(text) - len(get_plotlyjs()) < MB


def test_every_source_of_memory_has_its_line():
    child = ChildMemory(8, "worker", ProcessMemory(200 * MB))
    pss = ProportionalMemory(pss_bytes=900 * MB, uss_bytes=800 * MB)
    recording = make_recording(
        outside=[seen_outside(0, GB, children=(child,), proportional=pss)],
        inside=[seen_inside(1, GB, allocator=AllocatorMemory(700 * MB, MB, MB))],
    )

    roles = {trace["meta"]: trace["y"] for trace in chart_of(recording).figure["data"]}

    assert roles["rss"] == [1.2, 1.2]
    assert roles["held"] == [1.1, 1.1]
    assert (roles["malloc"], roles["children"], roles["pss"]) == ([0.7], [0.2], [0.9])


def test_devices_have_a_panel_of_their_own_and_host_devices_none():
    devices = (DeviceMemory("GPU:0", 30 * GB), DeviceMemory("CPU:0", GB, on_host=True))
    card = NvidiaMemory("A100", 35 * GB, 40 * GB)
    recording = make_recording(
        outside=[seen_outside(0, 2 * GB, nvidia=(card, structs.replace(card, ours_bytes=31 * GB)))],
        inside=[seen_inside(1, 2 * GB, devices=devices)],
    )

    chart = chart_of(recording)

    on_second = {one["name"]: one["y"] for one in chart.figure["data"] if one.get("yaxis") == "y2"}
    assert on_second == {
        "GPU:0, in tensors": [30.0],
        "A100 #0, all processes": [35.0],
        "A100 #1, this run": [31.0],
    }
    assert chart.has_devices


def test_the_clock_of_the_chart_starts_at_zero():
    chart = chart_of(make_growing())

    (rss,) = traces_of(chart, "rss")
    new_year_ms = 946_684_800_000
    assert rss["x"][:3] == [new_year_ms, new_year_ms + 250, new_year_ms + 500]
    assert chart.figure["layout"]["xaxis"]["range"] == [new_year_ms, rss["x"][-1]]


@pytest.mark.parametrize(
    ("duration_s", "tick"), [(10, "%-M:%S"), (36_000, "%-H:%M"), (90_000, "%-H:%M<br>day %-j")]
)
def test_the_clock_fits_the_length_of_the_run(duration_s, tick):
    chart = chart_of(make_recording([seen_outside(0, GB), seen_outside(duration_s, GB)]))

    assert chart.figure["layout"]["xaxis"]["tickformatstops"][-1]["value"] == tick


def test_the_peak_is_labelled_with_its_size_and_time():
    sizes = [500 * MB, 1310 * MB, 600 * MB]
    chart = chart_of(make_recording([seen_outside(at * 65, one) for at, one in enumerate(sizes)]))

    (label,) = parts_of(chart, "annotations", "peak")

    assert label["text"] == "peak 1.31 GB at 1 min 5 s"
    assert label["y"] == 1.31


def test_a_limit_in_reach_is_drawn():
    chart = chart_of(make_recording([seen_outside(0, 2 * GB), seen_outside(9, 2 * GB)]))

    (line,) = traces_of(chart, "limit")
    on_line, above = parts_of(chart, "annotations", "limit")
    assert line["y"] == [4.0, 4.0]
    assert (line["visible"], on_line["visible"], above["visible"]) == (True, True, False)
    assert not chart.is_limit_hidden


def test_a_limit_far_up_is_named_and_waits_behind_a_button():
    recording = make_recording([seen_outside(0, GB), seen_outside(9, GB)])
    chart = chart_of(recording)

    page = Page(render(recording))

    (line,) = traces_of(chart, "limit")
    on_line, above = parts_of(chart, "annotations", "limit")
    assert (line["visible"], on_line["visible"], above["visible"]) == (False, False, True)
    assert above["text"] == "↑ limit 4.00 GB"
    assert page.all_of("button") == [
        {"type": "button", "id": "limit-toggle", "aria-pressed": "false", "hidden": None}
    ]


def test_growth_is_drawn_with_its_slope_through_the_memory_held():
    recording = make_growing()
    growth = Growth(10 * MB, 10 * MB, None, 0.9, 1.1, BEGIN_T_S + 2, BEGIN_T_S + 12, 10, "epoch")

    (line,) = traces_of(chart_of(recording, growth=growth), "growth")

    assert line["name"] == "growth +10.0 MB/epoch"
    assert line["y"][1] - line["y"][0] == pytest.approx(100)
    middle = next(one for one in diagnose(recording).points if one.t_s == BEGIN_T_S + 7)
    assert sum(line["y"]) / 2 == pytest.approx(middle.held_bytes / MB, rel=0.01)


def test_phases_are_shaded_and_epochs_are_lines():
    recording = make_recording(
        [seen_outside(at / 4, GB) for at in range(20)], marks=marks_of_fit(3, has_validation=True)
    )

    chart = chart_of(recording)

    assert chart.bands == ("fit", "validation")
    assert len(parts_of(chart, "shapes", "band-validation")) == 3
    assert len(parts_of(chart, "shapes", "epoch-line")) == 3


def test_thousands_of_epochs_are_thinned_to_a_few_lines_and_no_stripes():
    outside = [seen_outside(at, GB) for at in range(0, 5000, 50)]
    recording = make_recording(outside, marks=marks_of_fit(5000, has_validation=True))

    chart = chart_of(recording)

    assert len(parts_of(chart, "shapes", "epoch-line")) == 50
    assert chart.epochs_per_line == 100
    assert chart.bands == ("fit",)


# Edges


EDGES = {
    "empty": Recording("empty"),
    "no samples": make_recording(marks=[mark(0, "begin", "fit"), mark(1, "end", "fit")]),
    "no phases": make_recording([seen_outside(0, GB), seen_outside(1, GB)]),
    "no limit": make_growing(header=make_header(limit=None)),
    "no header": make_growing(header=None),
    "still running": make_growing(exit=None),
    "one sample": make_recording([seen_outside(0, GB)]),
    "one sample of nothing": make_recording([seen_outside(0, 0)]),
    "from inside only": make_recording(inside=[seen_inside(0, GB, progress=StepProgress())]),
    "only malloc of another process": make_recording(
        outside=[structs.replace(seen_outside(0, GB), children=None)],
        inside=[seen_inside(1, GB, pid=8, allocator=AllocatorMemory(MB, 0, 0))],
    ),
    "failed": make_growing(exit=Exit(BEGIN_T_S + 22, code=1)),
    "damaged clock": make_growing(begin_t_s=0.0, end_t_s=0.0),
}


@pytest.mark.parametrize("name", EDGES)
def test_every_state_of_a_run_makes_a_whole_page(name):
    text = render(EDGES[name])

    assert text.startswith("<!doctype html>")
    assert text.rstrip().endswith("</html>")
    assert len(Page(text).all_of("h1")) == 1


@pytest.mark.parametrize(
    "name", ["empty", "no samples", "one sample of nothing", "only malloc of another process"]
)
def test_without_memory_there_is_no_chart_and_no_script(name):
    page = Page(render(EDGES[name]))

    assert "No memory was measured" in page.said
    assert not page.scripts


def test_an_empty_diagnosis_makes_a_page():
    assert "steady" in render_html(
        Run(Recording("x"), Diagnosis("steady", phases=(Phase("fit", 1, 0, 0),)))
    )


# The real browser


@pytest.fixture
def browse(tmp_path):
    """Opens a page in a real browser and returns its elements after the scripts have run."""
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next((path for path in map(shutil.which, names) if path), None)
    if browser is None:
        pytest.skip(f"needs a browser: none of {', '.join(names)} is on PATH")

    def open_page(text, *flags):
        path = tmp_path / "page.html"
        path.write_text(text, encoding="utf-8")
        quiet = ("no-first-run", "disable-background-networking", "disable-component-update")
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-sync"]
        command += [f"--{flag}" for flag in (*quiet, "enable-logging=stderr", *flags)]
        command += [f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=10000"]
        done = subprocess.run(
            [*command, "--dump-dom", path.as_uri()],
            capture_output=True,
            check=True,
            encoding="utf-8",
            timeout=120,
            env={**os.environ, "HOME": str(tmp_path)},
        )
        logged = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        return done.stdout, logged

    return open_page


def test_the_chart_draws_in_a_browser_without_an_error(browse):
    drawn, logged = browse(render(make_growing()))

    page = Page(drawn)
    assert logged == []
    assert "main-svg" in {attributes.get("class") for attributes in page.all_of("svg")}
    assert "growth +10.0 MB/epoch" in page.said


def test_hostile_names_do_nothing_in_a_browser(browse):
    drawn, logged = browse(render(make_hostile()))

    page = Page(drawn)
    assert logged == []
    assert not page.all_of("img")
    assert f"{HOSTILE}, in tensors" in page.said


def test_the_chart_never_offers_to_upload_a_recording(browse):
    drawn, _ = browse(render(make_growing()))

    titles = {one["data-title"] for one in Page(drawn).all_of("button") if "data-title" in one}
    assert not [title for title in titles if re.search("share|cloud|edit", title, re.IGNORECASE)]


def test_the_chart_is_painted_in_the_colours_of_a_dark_scheme(browse):
    drawn, _ = browse(render(make_growing()), "blink-settings=preferredColorScheme=0")

    assert "fill: rgb(230, 233, 236)" in drawn
