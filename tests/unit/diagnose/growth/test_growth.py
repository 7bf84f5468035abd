"""The verdict on growth, on recordings made by hand and on real ones."""

from dataclasses import replace
from pathlib import Path

import pytest
from builders import MB, header, inside, outside, points_and_phases, trained
from msgspec import structs

from memfit.diagnose.diagnosis import diagnose
from memfit.diagnose.growth.growth import judge_growth
from memfit.diagnose.growth.series import Point
from memfit.record.read_run import read_run
from memfit.record.recording import Recording

RECORDINGS = Path(__file__).parents[3] / "recordings" / "format-1"
BACKENDS = ("tensorflow", "jax", "torch")


def judge(recording):
    return judge_growth(*points_and_phases(recording))


def test_growth_over_epochs_has_its_rate_in_epochs_steps_and_seconds():
    recording = trained([(500 + 20 * number) * MB for number in range(10)], epoch_s=10, steps=100)

    growth = judge(recording).growth

    assert growth is not None
    assert growth.bytes_per_epoch == pytest.approx(20 * MB)
    assert growth.bytes_per_step == pytest.approx(0.2 * MB)
    assert growth.bytes_per_s == pytest.approx(2 * MB)
    assert growth.unit == "epoch"


def test_the_first_epoch_is_warm_up():
    levels = [100 * MB] + [500 * MB] * 12

    assert judge(trained(levels)).growth is None


def test_too_few_epochs_and_too_little_time_say_so():
    judgement = judge(trained([500 * MB, 600 * MB, 700 * MB], epoch_s=0.5))

    assert judgement.growth is None
    assert "the run had 3 epochs and 1 s" in judgement.why_unknown


def test_what_imports_take_is_not_growth():
    """A script that ends, or fails, soon after a slow import."""
    points = [
        Point(0.5 * number, 0, (30 + 20 * number) * MB, at="train.py:1", is_importing=number < 28)
        for number in range(30)
    ]

    assert judge_growth(points, ()).why_unknown is not None
    assert judge_growth(points[:28], ()).why_unknown is not None
    own = [replace(point, is_importing=False) for point in points]
    assert judge_growth(own, ()).growth is not None


def test_nothing_recorded_says_so():
    assert "the run had 0 epochs and 0 s" in judge(Recording("empty")).why_unknown


def test_what_malloc_keeps_for_a_while_is_not_growth():
    """The creep of a clean fit: in use flat, kept memory up by 2 MB an epoch."""
    creep = [2 * MB * number for number in range(15)]
    levels = [500 * MB + kept for kept in creep]

    assert judge(trained(levels, frees_bytes=creep)).growth is None


def test_a_creep_of_which_little_is_in_use_is_not_growth():
    """A clean fit on a busy machine, as it was measured."""
    held = (344, 345, 345, 346, 347, 348, 348, 348, 348, 349, 349, 349, 350)
    used = (334, 334, 332, 332, 334, 334, 334, 334, 334.5, 335, 335, 335, 336)
    levels = [held[0] * MB, *(one * MB for one in held)]
    kept = [0, *(round((one - other) * MB) for one, other in zip(held, used, strict=True))]

    assert judge(trained(levels, frees_bytes=kept)).growth is None


def test_what_malloc_keeps_without_end_is_growth():
    kept = [18 * MB * number for number in range(30)]
    levels = [500 * MB + one for one in kept]

    growth = judge(trained(levels, frees_bytes=kept)).growth

    assert growth is not None
    assert growth.bytes_per_epoch == pytest.approx(18 * MB)


def test_file_pages_are_not_growth():
    samples = [outside(number, 300 * MB, file_bytes=16 * MB * number) for number in range(60)]

    judgement = judge(Recording("made", header(), outside=tuple(samples), end_t_s=60))

    assert judgement == type(judgement)()


def test_memory_that_is_swapped_out_still_counts():

    samples = [
        structs.replace(
            sample, process=structs.replace(sample.process, swap_bytes=20 * MB * number)
        )
        for number, sample in enumerate(outside(float(t_s), 300 * MB) for t_s in range(60))
    ]

    growth = judge(Recording("made", header(), outside=tuple(samples), end_t_s=60)).growth

    assert growth is not None
    assert growth.bytes_per_s == pytest.approx(20 * MB, rel=0.05)


def test_growth_of_workers_is_growth():
    samples = [
        outside(number, 300 * MB, children=(100 * MB + 5 * MB * number, 100 * MB))
        for number in range(60)
    ]

    growth = judge(Recording("made", header(), outside=tuple(samples), end_t_s=60)).growth

    assert growth is not None
    assert growth.bytes_per_s == pytest.approx(5 * MB, rel=0.05)


def test_a_custom_loop_is_judged_over_time_and_counts_compiled_calls():
    samples = [inside(number, (300 + 3 * number) * MB, calls=50 * number) for number in range(60)]

    growth = judge(Recording("made", header(), inside=tuple(samples), end_t_s=60)).growth

    assert growth is not None
    assert growth.unit == "interval"
    assert growth.bytes_per_epoch is None
    assert growth.bytes_per_step == pytest.approx(3 * MB / 50, rel=0.05)


def test_updates_counted_while_tracing_are_not_taken_for_steps():
    samples = [
        inside(number, (300 + 3 * number) * MB, updates=2, calls=50 * number)
        for number in range(60)
    ]

    growth = judge(Recording("made", header(), inside=tuple(samples), end_t_s=60)).growth

    assert growth.bytes_per_step == pytest.approx(3 * MB / 50, rel=0.05)


def test_loading_data_before_the_first_step_is_not_growth():
    loading = [inside(number, (100 + 50 * number) * MB) for number in range(20)]
    training = [inside(20 + number, 1200 * MB, calls=number + 1) for number in range(20)]

    judgement = judge(Recording("made", header(), inside=tuple(loading + training), end_t_s=40))

    assert judgement.growth is None
    assert judgement.why_unknown is None


def test_a_leak_whose_steps_slow_down_is_growth_and_a_buffer_that_fills_is_not():
    """Others take the machine: fewer steps in a second, and as much memory for each of them."""
    steps = [8 * number if number < 40 else 320 + 2 * (number - 40) for number in range(1, 61)]
    leak = [inside(at, 300 * MB + size * MB, calls=size) for at, size in enumerate(steps)]
    even = [inside(at, (300 + size) * MB, calls=9 * at + 9) for at, size in enumerate(steps)]

    growth = judge(Recording("made", header(), inside=tuple(leak), end_t_s=60)).growth

    assert growth.bytes_per_step == pytest.approx(MB, rel=0.05)
    assert judge(Recording("made", header(), inside=tuple(even), end_t_s=60)).growth is None


def test_idle_time_after_the_last_step_does_not_hide_growth():
    training = [inside(number, (300 + 10 * number) * MB, calls=number) for number in range(1, 21)]
    idle = [inside(20 + number, 500 * MB, calls=20) for number in range(1, 31)]

    judgement = judge(Recording("made", header(), inside=tuple(training + idle), end_t_s=50))

    assert judgement.growth is not None


def test_few_long_epochs_are_judged_over_time():
    recording = trained([500 * MB, 600 * MB, 700 * MB], epoch_s=600)
    samples = tuple(
        inside(number * 10.0, (400 + 2 * number) * MB, steps=number) for number in range(1, 181)
    )

    growth = judge(Recording("made", header(), inside=samples, marks=recording.marks)).growth

    assert growth is not None
    assert growth.unit == "interval"
    assert growth.bytes_per_s == pytest.approx(0.2 * MB, rel=0.05)


def test_thousands_of_epochs_are_judged_too():
    growth = judge(trained([(500 + number) * MB for number in range(5000)])).growth

    assert growth is not None
    assert growth.bytes_per_epoch == pytest.approx(MB, rel=0.01)


def test_a_creep_that_would_not_double_memory_in_a_thousand_epochs_is_no_growth():
    levels = [(500 + 0.3 * number) * MB for number in range(60)]

    assert judge(trained([round(level) for level in levels])).growth is None


def test_exhaustion_is_projected_from_what_is_left():
    recording = trained([(500 + 20 * number) * MB for number in range(10)], epoch_s=10)

    diagnosis = diagnose(recording)

    assert diagnosis.projected_exhaustion_s == pytest.approx((10_000 - 680) / 2, rel=0.01)


def test_exhaustion_of_a_machine_counts_what_others_use():
    samples = tuple(
        outside(number, (300 + 10 * number) * MB, available_bytes=1_000 * MB)
        for number in range(30)
    )
    recording = Recording("made", header(source="machine"), outside=samples, end_t_s=30)

    assert diagnose(recording).projected_exhaustion_s == pytest.approx(100, rel=0.05)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_real_clean_fit_is_steady(backend):
    assert diagnose(read_run(RECORDINGS / f"clean-{backend}")).verdict == "steady"


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_real_clean_fit_is_steady_or_unknown_wherever_it_is_cut(backend):
    """No alarm at any epoch of a healthy run: a live line must not cry wolf."""
    recording = read_run(RECORDINGS / f"clean-{backend}")
    ends_s = [mark.t_s for mark in recording.marks if mark.phase == "epoch" and mark.event == "end"]

    verdicts = {cut_at(recording, end_s).verdict for end_s in ends_s}

    assert verdicts <= {"steady", "unknown"}


def cut_at(recording, t_s):
    return diagnose(
        Recording(
            recording.name,
            recording.header,
            outside=tuple(one for one in recording.outside if one.t_s <= t_s),
            inside=tuple(one for one in recording.inside if one.t_s <= t_s),
            marks=tuple(one for one in recording.marks if one.t_s <= t_s),
            end_t_s=t_s,
        )
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_real_leak_of_3_mb_an_epoch_is_found_with_its_rate(backend):
    diagnosis = diagnose(read_run(RECORDINGS / f"tour-{backend}"))

    assert diagnosis.verdict == "growing"
    assert diagnosis.growth.bytes_per_epoch == pytest.approx(3 * MB, rel=0.05)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_real_custom_loop_that_keeps_its_outputs_is_found(backend):
    diagnosis = diagnose(read_run(RECORDINGS / f"loop-keep-{backend}"))

    assert diagnosis.verdict == "growing"
    assert diagnosis.growth.bytes_per_step >= 256 * 256 * 4 * 0.95


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_real_custom_loop_that_keeps_nothing_is_steady(backend):
    assert diagnose(read_run(RECORDINGS / f"loop-drop-{backend}")).verdict == "steady"
