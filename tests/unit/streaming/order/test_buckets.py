"""Batches of similar length: every row once, within the tokens, as many batches in every epoch."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.streaming.order.buckets import BucketOrder
from memfit.streaming.order.epoch import Order, equal_edges
from memfit.streaming.order.lengths import Lengths, make_grid


def make_lengths(lengths, tokens):
    grid = make_grid(max(lengths))
    return Lengths(np.searchsorted(grid, lengths).astype(np.uint8), grid, tokens)


def batches_of(order, epoch=0):
    """The rows of each batch of an epoch."""
    laid_out = order.epoch(epoch)
    rows = []
    for index in range(laid_out.num_windows):
        window = laid_out.window(index)
        found = np.concatenate([np.arange(*one) for one in window.ranges])
        rows.append(found if window.permutation is None else found[window.permutation])
    sizes = list(laid_out.sizes(0, 1))
    assert laid_out.find_start(len(sizes)) == sum(sizes)
    return np.split(np.concatenate(rows), np.cumsum(sizes)[:-1])


def tokens_of(lengths, batch):
    """Rows times the longest, as it is padded."""
    return len(batch) * lengths.grid[lengths.steps[batch].max()]


@st.composite
def orders(draw):
    lengths = draw(st.lists(st.integers(1, 200), min_size=1, max_size=300))
    block_rows, window_rows = draw(st.integers(1, 60)), draw(st.integers(1, 200))
    edges = equal_edges(len(lengths), block_rows)
    seed = draw(st.none() | st.integers(0, 2**63))
    known = make_lengths(lengths, max(lengths) + draw(st.integers(0, 1000)))
    costs = known.share_out(edges, draw(st.floats(0, 1)))
    return BucketOrder(Order(edges, window_rows, 1, seed, costs=costs), known)


@given(orders())
def test_every_row_comes_once_within_the_tokens_in_as_many_batches_each_epoch(order):
    for epoch in range(5):
        batches = batches_of(order, epoch)

        assert sorted(np.concatenate(batches)) == list(range(order.num_rows))
        assert max(tokens_of(order.lengths, one) for one in batches) <= order.lengths.tokens
        assert len(batches) == order.num_batches


@given(orders())
def test_an_epoch_is_the_same_whenever_it_is_asked_for(order):
    first = np.concatenate(batches_of(order, 3))

    assert np.array_equal(first, np.concatenate(batches_of(order, 3)))


@given(st.lists(st.integers(1, 200), min_size=1, max_size=300), st.integers(0, 1000))
def test_without_a_seed_a_batch_ends_where_the_next_row_would_not_fit(lengths, more):
    known = make_lengths(lengths, max(lengths) + more)
    order = BucketOrder(Order(equal_edges(len(lengths), 7), 50, 1), known)

    batches = batches_of(order)

    assert np.concatenate(batches).tolist() == list(range(len(lengths)))
    for one, following in pairwise(batches):
        assert tokens_of(known, [*one, following[0]]) > known.tokens


@pytest.fixture
def many():
    """Rows of which the next is never shorter, in several windows."""
    lengths = np.sort(np.random.default_rng(0).lognormal(4, 0.7, 20_000).astype(int).clip(1, 900))
    known = make_lengths(lengths, 8192)
    edges = equal_edges(len(lengths), 50)
    order = Order(edges, 5000, 1, seed=4, costs=known.share_out(edges, 0.0))
    return BucketOrder(order, known), lengths


def test_little_of_a_batch_is_padding_and_lengths_do_not_come_sorted(many):
    order, lengths = many
    batches = batches_of(order)

    padded = sum(tokens_of(order.lengths, one) for one in batches)
    longest = np.array([lengths[one].max() for one in batches])

    assert 1 - lengths.sum() / padded < 0.1
    assert abs(np.corrcoef(longest[1:], longest[:-1])[0, 1]) < 0.2


def test_rows_have_other_neighbours_in_every_epoch(many):
    order, _ = many

    def mates(epoch):
        return next(set(one.tolist()) for one in batches_of(order, epoch) if 10_000 in one)

    assert len(mates(0) & mates(1)) < 0.2 * len(mates(0))


def test_windows_of_long_rows_have_fewer_of_them(many):
    order, lengths = many
    kept = BucketOrder(dataclasses.replace(order._rows, seed=None), order.lengths)
    laid_out = kept.epoch(0)

    steps = [
        lengths[start:stop].sum()
        for index in range(laid_out.num_windows)
        for start, stop in laid_out.window(index).ranges
    ]

    assert max(steps) < 1.2 * 5000 * lengths.mean()
