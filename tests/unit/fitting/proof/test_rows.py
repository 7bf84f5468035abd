"""The rows that a proof runs on, and how they are cut."""

import math
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.fitting.proof.rows import (
    FEW_ROWS,
    MOST_ROWS,
    Rows,
    choose_rows,
    count_rows,
    more_rows,
    take,
)

NUMBERS = st.integers(1, 200)


def model(*shapes):
    return SimpleNamespace(variables=[SimpleNamespace(shape=shape) for shape in shapes])


def batch(number, width=3):
    """Rows that tell which they are."""
    x = np.arange(number, dtype="float32")[:, None] * np.ones(width, "float32")
    return {"a": x, "b": [x + 1000]}, np.arange(number), None


@given(NUMBERS, st.integers(2, 64))
def test_the_first_rows_are_taken_in_their_order(number, most):
    rows = choose_rows(model(), batch(number), most)

    assert rows.number <= min(number, most)
    np.testing.assert_array_equal(rows.batch[1], np.arange(rows.number))
    assert len(keras.tree.flatten(rows.batch)) == 4
    np.testing.assert_array_equal(rows.batch[0]["b"][0][:, 0], 1000 + np.arange(rows.number))


@given(NUMBERS)
def test_as_many_rows_as_make_a_proof_are_taken_where_they_are_there(number):
    rows = choose_rows(model((7, 32)), batch(number))

    assert rows.number >= min(number, FEW_ROWS)
    assert rows.number <= MOST_ROWS


@given(NUMBERS)
def test_micro_batches_are_all_rows_once_with_shares_that_add_up(number):
    rows = choose_rows(model(), batch(number))

    parts = list(rows.parts())

    assert len(parts) == min(3, -(-rows.number // rows.size))
    assert math.isclose(sum(share for _, share in parts), 1.0)
    np.testing.assert_array_equal(np.concatenate([part[1] for part, _ in parts]), rows.batch[1])
    assert {count_rows(part) for part, _ in parts} | {rows.number} == rows.sizes


def test_micro_batches_are_unequal():
    rows = choose_rows(model(), batch(64))

    assert [count_rows(part) for part, _ in rows.parts()] == [11, 11, 10]


@given(st.lists(st.integers(1, 32), max_size=8))
def test_numbers_that_are_lengths_of_other_axes_are_avoided_where_that_is_possible(lengths):
    rows = choose_rows(model(*((one,) for one in lengths)), batch(100, width=2))

    possible = [
        number
        for number in range(FEW_ROWS, MOST_ROWS + 1)
        if not Rows(None, number, -(-number // 3)).sizes & {*lengths, 2}
    ]
    assert not possible or not rows.sizes & {*lengths, 2}


def test_reversed_rows_are_the_same_rows():
    rows = choose_rows(model(), batch(20))

    back = rows.reversed()

    np.testing.assert_array_equal(back.batch[1], rows.batch[1][::-1])
    np.testing.assert_array_equal(back.reversed().batch[0]["a"], rows.batch[0]["a"])


@given(st.integers(1, 600), st.integers(1, 600))
def test_more_rows_are_as_many_times_the_few(number, most):
    few = choose_rows(model(), batch(number))

    more = more_rows(batch(number), few, most)

    assert more.number % few.number == 0
    assert few.number <= more.number <= max(few.number, min(number, most))
    assert len(list(more.parts())) <= 3


def test_rows_with_numbers_are_preferred_to_rows_without():
    x = np.ones((40, 3), "float32")
    x[::4] = np.nan
    x[:, 1] = 2

    rows = choose_rows(model(), (x, np.arange(40), None))

    assert np.isfinite(rows.batch[0]).all()
    assert not set(rows.batch[1]) & set(range(0, 40, 4))


def test_where_all_rows_have_what_is_no_number_they_are_taken_as_they_are():
    x = np.ones((40, 3), "float32")
    x[:, 1] = np.nan

    assert choose_rows(model(), (x, None, None)).number >= FEW_ROWS


@pytest.mark.parametrize(("begin", "end"), [(0, 2), (3, 5)])
def test_rows_of_a_table_are_taken_by_place(begin, end):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": range(5)}, index=[9, 8, 7, 6, 5])

    assert list(take((table, None, None), begin, end)[0]["a"]) == list(range(begin, end))
