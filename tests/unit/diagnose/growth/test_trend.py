"""The arithmetic under the verdict on growth, on levels that are known."""

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.diagnose.growth.trend import MIN_INTERVALS, find_trend, what_stays

MB = 1_000_000
BASE = 300 * MB


def noise(count, size_bytes, seed=0):
    source = random.Random(seed)
    return [source.uniform(-size_bytes, size_bytes) for _ in range(count)]


def added(*rows):
    return [BASE + sum(values) for values in zip(*rows, strict=True)]


def test_a_steady_rise_is_a_trend_with_its_rate():
    trend = find_trend([BASE + 5 * MB * number for number in range(10)])

    assert trend is not None
    assert trend.per_interval == pytest.approx(5 * MB)
    assert trend.begin == 0


def test_a_large_rise_that_slows_down_is_a_trend_and_a_small_one_is_none():
    """A busy machine slows a leak down; a creep that settles is small."""
    fast, slow = [80 * MB] * 12, [38 * MB] * 12
    leak = list(itertools.accumulate([BASE, *fast, *slow]))
    creep = list(itertools.accumulate([BASE, *(4 * MB for _ in fast), *(MB for _ in slow)]))

    assert find_trend(leak) is not None
    assert find_trend(creep) is None


def test_level_memory_is_no_trend():
    assert find_trend([BASE] * 30) is None


def test_noise_alone_is_no_trend():
    for seed in range(50):
        assert find_trend(added(noise(30, 20 * MB, seed))) is None


@pytest.mark.parametrize("at", range(1, 20))
def test_one_jump_is_no_trend(at):
    levels = [BASE + (200 * MB if number >= at else 0) for number in range(20)]

    assert find_trend(levels) is None


def test_two_jumps_are_no_trend():
    levels = [BASE + 100 * MB * ((number >= 5) + (number >= 9)) for number in range(20)]

    assert find_trend(levels) is None


@pytest.mark.parametrize(
    ("settles_after", "count"),
    [(2, 6), (2, 40), (4, 6), (4, 20), (6, 6), (6, 10), (6, 40), (10, 10), (10, 20), (10, 40)],
)
def test_a_creep_that_settles_is_no_trend(settles_after, count):
    """A clean `fit`: some MB an epoch at first, then less and less."""
    levels = [BASE + 15 * MB * (1 - math.exp(-number / settles_after)) for number in range(count)]

    assert find_trend(levels) is None


@pytest.mark.parametrize("fill", [3, 6, 10])
def test_a_buffer_that_fills_and_stays_full_is_no_trend(fill):
    levels = [BASE + 30 * MB * min(number, fill) for number in range(fill + 4)]

    assert find_trend(levels) is None


@pytest.mark.parametrize("period", [2, 3, 5, 7])
def test_a_saw_tooth_is_no_trend_wherever_it_is_cut(period):
    for count in range(2 * period, 40):
        levels = [BASE + 10 * MB * (number % period) for number in range(count)]

        assert find_trend(levels) is None


@pytest.mark.parametrize("period", [2, 3, 5])
def test_a_saw_tooth_on_a_leak_is_a_trend_with_the_rate_of_the_leak(period):
    levels = [BASE + 20 * MB * number + 15 * MB * (number % period) for number in range(30)]

    trend = find_trend(levels)

    assert trend is not None
    assert trend.per_interval == pytest.approx(20 * MB, rel=0.1)


def test_a_leak_under_noise_is_found_and_its_interval_holds_the_rate():
    held = 0
    for seed in range(40):
        levels = added([8 * MB * number for number in range(20)], noise(20, 10 * MB, seed))
        trend = find_trend(levels)
        assert trend is not None
        held += trend.low <= 8 * MB <= trend.high

    assert held >= 34  # a 90% interval, with room for chance


def test_a_leak_that_begins_late_is_found_from_where_it_begins():
    levels = [float(BASE)] * 15 + [BASE + 10 * MB * number for number in range(1, 7)]

    trend = find_trend(levels)

    assert trend is not None
    assert 12 <= trend.begin <= 15
    assert trend.per_interval == pytest.approx(10 * MB, rel=0.2)


def test_a_leak_is_called_within_five_windows_of_its_beginning():
    levels = [float(BASE)] * 20 + [BASE + 10 * MB * number for number in range(1, 6)]

    assert find_trend(levels) is not None


def test_growth_below_what_was_reached_before_is_no_trend():
    """Memory fell and comes back: nothing new is needed."""
    levels = [900.0 * MB] * 5 + [BASE + 20 * MB * number for number in range(8)]

    assert find_trend(levels) is None


def test_an_early_peak_does_not_hide_a_leak_for_ever():
    levels = [900.0 * MB] * 5 + [BASE + 20 * MB * number for number in range(28)]

    assert find_trend(levels) is not None


def test_a_leak_in_jumps_every_few_windows_is_a_trend():
    """A checkpoint every fourth epoch that leaks."""
    levels = [BASE + 40 * MB * (number // 4) for number in range(24)]

    trend = find_trend(levels)

    assert trend is not None
    assert trend.per_interval == pytest.approx(10 * MB, rel=0.2)


def test_three_small_jumps_in_a_long_time_are_no_trend():
    """TensorFlow's pool takes another chunk now and then; a leak comes again and again."""
    pool = [312, *[315] * 10, *[318] * 6, *[321] * 7]
    leak = [number * MB for size in range(312, 336, 3) for number in [size] * 3]

    assert find_trend([size * MB for size in pool]) is None
    assert find_trend(leak) is not None


def test_too_few_windows_are_no_trend():
    levels = [BASE + 50.0 * MB * number for number in range(MIN_INTERVALS - 1)]

    assert find_trend(levels) is None


@given(st.lists(st.floats(0, 1e12), min_size=1))
def test_what_stays_never_falls_and_is_never_above_the_levels(levels):
    staying = what_stays(levels)

    assert all(after >= before for before, after in itertools.pairwise(staying))
    assert all(low <= level for low, level in zip(staying, levels, strict=True))


@given(st.lists(st.floats(1e6, 1e11), min_size=MIN_INTERVALS, max_size=40))
def test_falling_memory_is_never_a_trend(levels):
    assert find_trend(sorted(levels, reverse=True)) is None


@given(
    rate=st.floats(2 * MB, 500 * MB),
    count=st.integers(MIN_INTERVALS + 1, 60),
    base=st.floats(50 * MB, 5000 * MB),
)
def test_every_even_leak_above_the_threshold_is_found(rate, count, base):
    levels = [base + rate * number for number in range(count)]
    rise = levels[-1] - levels[0]
    if rise < max(4 * MB, 0.02 * base) * 1.01:
        return

    trend = find_trend(levels)

    assert trend is not None
    assert trend.per_interval == pytest.approx(rate, rel=1e-6)
