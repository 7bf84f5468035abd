"""Numbers that the user's code counts up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.fitting.proof.counters import counts_calls


@given(st.integers(-5, 5).filter(bool), st.integers(2, 9))
def test_what_moves_once_a_micro_batch_counts_calls(move, number):
    assert counts_calls(move, number * move, number)


@given(st.integers(-5, 5), st.integers(2, 9))
def test_what_moves_once_a_batch_does_not(move, number):
    assert not counts_calls(move, move, number)


@pytest.mark.parametrize(("whole", "parts"), [(0, 0), (0, 3), (32, 10), (-1, 1)])
def test_sizes_and_flags_do_not(whole, parts):
    assert not counts_calls(whole, parts, 3)
