"""Which size of micro-batch is tried next."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memfit.fitting.attempt import Measurement
from memfit.fitting.size_search import (
    best_measurement,
    estimate_peak,
    even_size,
    find_faster,
    next_size,
)

MB = 1_000_000


def count_micro_batches(size, batch_size):
    return -(-batch_size // size)


def search(need, batch_size, budget_bytes, idle_bytes=0, counted_bytes=None):
    """Tries sizes against a model's true need until there is nothing more to learn."""
    trials = [Measurement(0, idle_bytes)]
    while (size := next_size(trials, batch_size, budget_bytes, counted_bytes)) is not None:
        assert 1 <= size <= batch_size
        if len(trials) != 2:  # the first size is tried twice
            assert size not in [one.size for one in trials], trials
        trials.append(Measurement(size, need(size)))
    return trials


@example(192, 181, 40.0, 501, 0.0, 1.0)
@given(
    st.integers(1, 4096),
    st.integers(0, 500),
    st.floats(0.001, 50),
    st.integers(501, 4000),
    st.floats(0, 1),
    st.none() | st.floats(0.7, 3),
)
def test_no_more_micro_batches_are_found_than_nine_tenths_of_the_largest_that_fits_would_make(
    batch_size, fixed_mb, sample_mb, budget_mb, idle_share, times_counted
):
    def need(size):
        return int((fixed_mb + sample_mb * size) * MB)

    counted_bytes = None if times_counted is None else sample_mb * MB / times_counted
    idle_bytes = int(idle_share * fixed_mb * MB)
    trials = search(need, batch_size, budget_mb * MB, idle_bytes, counted_bytes)
    best = best_measurement(trials[1:], budget_mb * MB)

    largest = min(batch_size, int((budget_mb - fixed_mb) / sample_mb))
    if largest < 1:
        assert best is None
    else:
        assert best is not None
        # From one sample alone nobody can tell what the second needs.
        alone = need(1) - trials[0].peak_bytes
        is_stuck = best.size == 1 and need(1) + alone > budget_mb * MB
        enough = even_size(max(1, min(int(0.9 * largest), largest - 1)), batch_size)
        assert best.size >= enough or is_stuck


@given(st.integers(2, 4096), st.floats(0.01, 5), st.integers(600, 3000))
def test_memory_that_rises_in_a_line_passes_the_budget_only_at_the_start(
    batch_size, sample_mb, budget_mb
):
    def need(size):
        return int((500 + sample_mb * size) * MB)

    trials = search(need, batch_size, budget_mb * MB, 400 * MB)[1:]

    fits = [one.peak_bytes <= budget_mb * MB for one in trials]
    assert all(fits[fits.index(True) :])


@given(st.integers(1, 2048), st.integers(1, 3000), st.integers(1, 3000))
def test_a_larger_budget_never_gets_a_much_smaller_micro_batch(batch_size, one_mb, other_mb):
    def need(size):
        return int((200 + 0.7 * size) * MB)

    sizes = [
        getattr(best_measurement(search(need, batch_size, mb * MB)[1:], mb * MB), "size", 0)
        for mb in sorted((one_mb, other_mb))
    ]

    assert sizes[1] >= 0.9 * sizes[0]


def test_a_step_that_failed_is_followed_by_a_quarter_of_its_size():
    assert next_size([Measurement(0, 0), Measurement(32, 0, failed=True)], 256, 100 * MB) == 8


def test_a_step_that_failed_within_the_budget_is_followed_by_half_the_way_to_it():
    trials = [
        Measurement(0, 0),
        Measurement(8, 80),
        Measurement(8, 80),
        Measurement(64, 640),
        Measurement(100, 700, failed=True),
    ]

    assert next_size(trials, 820, 1000) == 82


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_an_even_size_is_the_smallest_that_makes_as_many_micro_batches(size, batch_size):
    even = even_size(size, batch_size)

    assert even <= size
    assert count_micro_batches(even, batch_size) == count_micro_batches(size, batch_size)
    assert even == 1 or count_micro_batches(even - 1, batch_size) > count_micro_batches(
        size, batch_size
    )


def test_what_fits_into_memory_that_a_pool_has_taken_says_little_of_larger_micro_batches():
    flat = [
        Measurement(0, 800),
        Measurement(512, 1048),
        Measurement(512, 1048),
        Measurement(2048, 1050),
    ]

    assert next_size(flat, 16384, 1350) == 4096


def test_memory_that_may_rise_more_steeply_is_approached_with_smaller_steps():
    trials = [Measurement(0, 0), Measurement(60, 160), Measurement(60, 160), Measurement(120, 280)]

    assert next_size(trials, 960, 430, bend=1.0) == 192
    assert next_size(trials, 960, 430, bend=1.4) == 160


def test_one_sample_that_does_not_fit_ends_the_search():
    assert next_size([Measurement(0, 0), Measurement(1, 200 * MB)], 256, 100 * MB) is None


def test_a_smaller_size_that_was_clearly_faster_is_found():
    trials = [
        Measurement(0, 0),
        Measurement(8, 80, num_samples=1, step_s=0.03),
        Measurement(32, 320, num_samples=1, step_s=0.01),
    ]

    assert find_faster(trials, 64, 0.015) == (32, pytest.approx(1.5))
    assert find_faster(trials, 64, 0.011) is None
    assert find_faster(trials, 32, 0.01) is None


def test_the_whole_batch_is_told_by_the_line():
    trials = [
        Measurement(0, 50 * MB),
        Measurement(8, 200 * MB),
        Measurement(8, 180 * MB),
        Measurement(16, 260 * MB),
    ]

    assert estimate_peak(trials, 256) == 2660 * MB


def test_memory_that_does_not_rise_with_the_size_tells_nothing_of_the_whole_batch():
    trials = [Measurement(0, 100 * MB), Measurement(3, 810 * MB), Measurement(1, 838 * MB)]

    assert estimate_peak(trials, 96) is None


def test_sizes_near_each_other_tell_nothing_of_the_whole_batch():
    trials = [
        Measurement(0, 919 * MB),
        Measurement(50, 1376 * MB),
        Measurement(50, 1275 * MB),
        Measurement(52, 1484 * MB),
    ]

    assert estimate_peak(trials, 1600) is None


def test_one_sample_is_tried_once_where_memory_was_short_before_any_step():
    trials = [Measurement(0, 120 * MB), Measurement(8, 130 * MB), Measurement(2, 130 * MB)]
    assert next_size(trials, 256, 100 * MB) == 1

    assert next_size([*trials, Measurement(1, 130 * MB)], 256, 100 * MB) is None


def test_a_batch_that_fits_by_far_is_tried_at_once():
    trials = [Measurement(0, 100 * MB), Measurement(8, 108 * MB)]

    assert next_size(trials, 256, 400 * MB) == 256


def test_nothing_more_is_tried_after_a_size_that_fitted_once_and_once_did_not():
    trials = [Measurement(0, 0), Measurement(1, 6 * MB), Measurement(1, 6 * MB, failed=True)]

    assert next_size(trials, 2, 10 * MB) is None
