"""Verdict and findings, on recordings made by hand."""

import dataclasses

import pytest
from builders import MB, header, outside, points_and_phases, trained

from memfit.diagnose.diagnosis import diagnose
from memfit.measure.control_group import ControlGroupMemory
from memfit.record.recording import Recording
from memfit.record.samples import Exit, Mark

STEADY = [500 * MB] * 12
GROWING = [(500 + 20 * number) * MB for number in range(12)]


def ended(levels, **how):
    return trained(levels, exit=Exit(130.0, **how))


def codes(diagnosis):
    return [finding.code for finding in diagnosis.findings]


@pytest.mark.parametrize(
    ("levels", "how", "verdict"),
    [
        (STEADY, {"code": 0}, "steady"),
        (GROWING, {"code": 0}, "growing"),
        (STEADY[:3], {"code": 0}, "unknown"),
        (GROWING, {"code": 1}, "failed"),
        (STEADY, {"signal": "SIGSEGV"}, "failed"),
        (STEADY, {"signal": "SIGINT"}, "steady"),
        (GROWING, {"signal": "SIGTERM"}, "growing"),
        (GROWING, {"signal": "SIGKILL"}, "killed"),
    ],
)
def test_the_verdict_is_the_gravest_thing_known(levels, how, verdict):
    recording = dataclasses.replace(ended(levels, **how))
    if verdict == "unknown":
        recording = trained(levels, epoch_s=0.1, exit=Exit(1.0, **how))

    assert diagnose(recording).verdict == verdict


def test_a_run_whose_end_nobody_saw_is_judged_by_its_memory():
    assert diagnose(trained(GROWING)).verdict == "growing"


def test_growth_is_reported_beside_a_graver_verdict():
    assert diagnose(ended(GROWING, signal="SIGKILL")).growth is not None


def test_a_kill_that_the_control_group_counted_names_kernel_size_limit_and_growth():
    recording = ended(GROWING, signal="SIGKILL", group_oom_kills=1, peak_rss_bytes=740 * MB)

    finding, *_ = diagnose(recording).findings

    assert finding.code == "killed"
    assert finding.confidence == "certain"
    assert finding.message == (
        "Killed by the kernel, out of memory in its control group at 740 MB of a 10.0 GB "
        "limit (cgroup v2). 10 s earlier it was growing by 20.0 MB/epoch."
    )


def test_a_kill_that_only_the_machine_counted_is_likely_for_memory():
    recording = ended(STEADY, signal="SIGKILL", group_oom_kills=0, machine_oom_kills=1)

    finding, *_ = diagnose(recording).findings

    assert finding.confidence == "likely"
    assert "on this machine" in finding.message


def test_a_kill_that_the_kernel_did_not_count_is_compared_with_no_limit():
    recording = ended(STEADY, signal="SIGKILL", group_oom_kills=0, machine_oom_kills=0)

    finding, *_ = diagnose(recording).findings

    assert finding.message.startswith("Killed by SIGKILL at a peak of ")
    assert "The kernel counted no out-of-memory kill, so it came from the script" in finding.message
    assert "limit" not in finding.message
    assert "Find the sender" in finding.fix


def test_nine_tenths_of_the_limit_is_near():
    recording = trained([9_100 * MB] * 12)

    diagnosis = diagnose(recording)

    assert diagnosis.verdict == "near_limit"
    assert "9.10 GB, 91% of the 10.0 GB limit (cgroup v2)" in diagnosis.findings[0].message


def test_page_cache_and_mapped_files_do_not_bring_a_run_near_its_limit():
    group = ControlGroupMemory(usage_bytes=9_900 * MB, anonymous_bytes=400 * MB)
    samples = tuple(
        outside(number, 400 * MB, file_bytes=9_000 * MB, control_group=group)
        for number in range(20)
    )

    diagnosis = diagnose(Recording("made", header(), outside=samples, end_t_s=20.0))

    assert diagnosis.verdict == "steady"


def test_others_in_the_same_control_group_count_towards_its_limit():
    group = ControlGroupMemory(usage_bytes=9_500 * MB, anonymous_bytes=9_400 * MB)
    samples = tuple(outside(number, 400 * MB, control_group=group) for number in range(20))

    diagnosis = diagnose(Recording("made", header(), outside=samples, end_t_s=20.0))

    assert codes(diagnosis) == ["near-limit"]


def test_the_peak_is_the_kernels_mark_when_samples_missed_it():
    recording = ended(STEADY, code=0, peak_rss_bytes=2_000 * MB)

    assert diagnose(recording).peak_bytes == 2_000 * MB


def test_the_peak_counts_all_processes_together():
    samples = tuple(
        outside(number, 400 * MB, children=(100 * MB, 200 * MB)) for number in range(20)
    )

    assert diagnose(Recording("made", header(), outside=samples)).peak_bytes == 700 * MB


def test_an_empty_recording_is_unknown():
    diagnosis = diagnose(Recording("empty"))

    assert diagnosis.verdict == "unknown"
    assert diagnosis.peak_bytes is None


def test_phases_know_their_time_peak_and_change():
    recording = trained(GROWING, epoch_s=10)

    _, phases = points_and_phases(recording)

    assert [phase.name for phase in phases[:3]] == ["fit", "epoch", "epoch"]
    assert phases[0].duration_s == 120
    assert phases[0].peak_bytes == GROWING[-1]
    assert phases[2].change_bytes == 20 * MB


def test_a_phase_that_never_ended_lasts_until_the_end():
    marks = (Mark(1.0, "begin", "fit", 1), Mark(2.0, "begin", "epoch", 1))

    _, phases = points_and_phases(Recording("killed", marks=marks, end_t_s=9.0))

    assert [(phase.name, phase.is_finished, phase.end_t_s) for phase in phases] == [
        ("fit", False, 9.0),
        ("epoch", False, 9.0),
    ]


def test_epochs_of_two_fits_with_the_same_number_are_two_phases():
    marks = []
    for number in (1, 2):
        t_s = number * 10.0
        marks += [
            Mark(t_s, "begin", "fit", number),
            Mark(t_s + 1, "begin", "epoch", 1),
            Mark(t_s + 2, "end", "epoch", 1),
            Mark(t_s + 3, "end", "fit", number),
        ]

    _, phases = points_and_phases(Recording("two", marks=tuple(marks), end_t_s=40.0))

    assert [phase.name for phase in phases] == ["fit", "epoch", "fit", "epoch"]
