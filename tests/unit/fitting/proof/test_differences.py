"""How far two steps lie apart: properties of errors and of what is no rounding."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.fitting.proof.differences import (
    MOST_NOISE,
    TOLERANCE,
    Errors,
    are_zero,
    gradient_errors,
    root_mean_square,
    tolerance,
    value_errors,
)

NUMBERS = st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=20).map(
    lambda numbers: np.array(numbers, "float32")
)
ODD = st.sampled_from([math.nan, math.inf, -math.inf])


@given(NUMBERS)
def test_equal_values_have_no_error(one):
    assert value_errors([one], [one.copy()]) == [0.0]


@given(NUMBERS, st.floats(1e-4, 10))
def test_a_value_that_is_larger_by_a_share_has_that_error(one, share):
    one = np.where(np.abs(one) < 1, 1.0, one).astype("float64")

    assert value_errors([one], [one * (1 + share)])[0] == pytest.approx(share, rel=1e-6)


@given(NUMBERS, ODD, st.data())
def test_what_is_no_number_in_both_is_equal_and_in_one_is_not(one, odd, data):
    place = data.draw(st.integers(0, len(one) - 1))
    with_odd = one.copy()
    with_odd[place] = odd

    assert value_errors([with_odd], [with_odd.copy()]) == [0.0]
    assert value_errors([with_odd], [one]) == [math.inf]
    assert value_errors([one], [with_odd]) == [math.inf]


def test_infinities_of_another_sign_differ():
    assert value_errors([np.array([math.inf])], [np.array([-math.inf])]) == [math.inf]


def test_whole_numbers_and_truth_values_are_compared_as_numbers():
    assert value_errors([np.array([3])], [np.array([1])])[0] == pytest.approx(2 / 3)
    assert value_errors([np.array([True])], [np.array([False])]) == [1.0]
    assert value_errors([np.array([2**40])], [np.array([2**40])]) == [0.0]


def test_other_shapes_and_numbers_of_values_differ():
    assert value_errors([np.zeros(2)], [np.zeros(3)]) == [math.inf]
    assert value_errors([np.zeros(2)], []) == [math.inf]


def test_values_that_are_all_zero_or_empty_are_equal():
    assert value_errors([np.zeros(3), np.zeros((0, 2))], [np.zeros(3), np.zeros((0, 2))]) == [0, 0]


@given(st.floats(1e-12, 1e-8))
def test_a_gradient_that_is_rounding_only_is_measured_by_the_others(tiny):
    first = [np.ones(100), np.full(4, tiny)]
    second = [np.ones(100), np.full(4, -tiny)]
    scale = root_mean_square(first)

    errors = gradient_errors(first, second, scale)

    assert errors[0] == 0.0
    assert errors[1] <= 2.1 * tiny / (0.1 * scale)


def test_the_root_mean_square_is_over_all_numbers_of_all_arrays():
    assert root_mean_square([np.array([3.0]), np.array([4.0, 0.0])]) == pytest.approx(
        math.sqrt(25 / 3)
    )
    assert root_mean_square([]) == 0.0
    assert root_mean_square([np.array([math.nan, 1.0])]) == pytest.approx(math.sqrt(0.5))


def test_gradients_are_zero_only_if_all_are():
    assert are_zero([np.zeros(3), np.zeros(0)])
    assert not are_zero([np.zeros(3), np.array([0.0, 1e-30])])
    assert not are_zero([np.array([math.nan])])


@given(st.floats(0, 1))
def test_rounding_is_never_taken_for_less_than_the_least_and_never_for_a_coupling(noise):
    allowed = tolerance(noise)

    assert allowed >= TOLERANCE
    assert allowed <= 8 * MOST_NOISE
    assert noise < allowed or noise >= MOST_NOISE


FEW = st.lists(st.floats(0, 1), min_size=3, max_size=3)


@given(FEW, FEW, FEW, FEW)
def test_errors_beyond_noise_are_the_same_errors_or_nothing(gradients, states, metrics, logs):
    found = Errors(gradients, states, metrics, logs)

    beyond = found.beyond(Errors([0] * 3, [0] * 3, [0] * 3, [0] * 3))

    assert beyond.worst == (found.worst if found.worst > TOLERANCE else 0.0)
    for kept, had in zip(beyond.gradients, gradients, strict=True):
        assert kept in (0.0, had)


@given(FEW)
def test_noise_of_the_model_itself_is_no_difference(noise):
    small = [one * MOST_NOISE * 0.99 for one in noise]
    found = Errors(small, small, small, small)

    assert found.beyond(found).worst == 0.0


def test_no_errors_have_no_worst():
    assert Errors().worst == 0.0
