"""The order of rows: every row once an epoch, from any point on, well mixed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memfit.streaming.order.epoch import Order, equal_edges
from memfit.streaming.order.shuffle_plan import DataFacts, predict_deff


def rows_of(order, epoch=0, first_window=0):
    """All rows of an epoch as the stream gives them."""
    laid_out = order.epoch(epoch)
    found = []
    for index in range(first_window, laid_out.num_windows):
        window = laid_out.window(index)
        rows = np.concatenate([np.arange(start, stop) for start, stop in window.ranges])
        assert len(rows) == window.num_rows
        found.append(rows if window.permutation is None else rows[window.permutation])
    return np.concatenate(found)


@st.composite
def orders(draw):
    sizes = draw(
        st.one_of(
            st.lists(st.integers(1, 40), min_size=1, max_size=30),
            st.builds(lambda number, size: [size] * number, st.integers(1, 30), st.integers(1, 40)),
        )
    )
    return Order(
        np.cumsum([0, *sizes]),
        window_rows=draw(st.integers(1, 300)),
        batch_size=draw(st.integers(1, 100)),
        seed=draw(st.none() | st.integers(0, 2**63)),
        num_shards=draw(st.integers(1, 4)),
    )


def shards_of(order):
    return [
        Order(order.edges, order.window_rows, order.batch_size, order.seed, at, order.num_shards)
        for at in range(order.num_shards)
    ]


@given(orders(), st.integers(0, 1000))
def test_every_row_comes_once_an_epoch_in_one_of_the_shards(order, epoch):
    if order.num_shards > order.edges[-1]:
        return

    found = [rows_of(shard, epoch) for shard in shards_of(order)]

    rows = np.concatenate(found).tolist()
    least, left_over = divmod(int(order.edges[-1]), order.num_shards)
    # What is left over is left out where some shards would need a batch more for it.
    num_left_out = 0 if least % order.batch_size else left_over
    assert len(set(rows)) == len(rows) == order.edges[-1] - num_left_out
    assert len({shard.num_batches for shard in shards_of(order)}) == 1
    assert [len(one) for one in found] == [shard.num_rows for shard in shards_of(order)]
    assert max(map(len, found)) - min(map(len, found)) <= 1


@given(orders(), st.integers(0, 5), st.data())
def test_any_row_is_found_again_by_its_place_alone(order, epoch, data):
    if order.num_shards > order.edges[-1]:
        return
    place = data.draw(st.integers(0, order.num_rows - 1))
    laid_out = order.epoch(epoch)

    window = laid_out.find_window(place)
    rest = rows_of(order, epoch, window)[place - laid_out.window(window).start :]

    assert rest.tolist() == rows_of(order, epoch)[place:].tolist()


@given(orders())
def test_without_a_seed_rows_keep_their_order(order):
    kept = Order(order.edges, order.window_rows, order.batch_size)

    assert rows_of(kept).tolist() == list(range(order.edges[-1]))


@given(orders())
def test_a_window_of_several_blocks_has_no_more_rows_than_allowed(order):
    laid_out = order.epoch(0)

    for first, stop, rows in zip(
        laid_out.first_chunks, laid_out.first_chunks[1:], np.diff(laid_out.first_rows), strict=False
    ):
        assert rows <= order.window_rows or stop - first == 1


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(0, 100))
def test_epochs_and_seeds_have_orders_of_their_own(seed, epoch):
    order = Order(equal_edges(1000, 10), 200, 32, seed)

    assert rows_of(order, epoch).tolist() == rows_of(order, epoch).tolist()
    assert rows_of(order, epoch).tolist() != rows_of(order, epoch + 1).tolist()
    other = Order(equal_edges(1000, 10), 200, 32, seed + 1)
    assert rows_of(order, epoch).tolist() != rows_of(other, epoch).tolist()


def test_the_order_is_the_same_on_every_machine():
    """A resumed run relies on it. If this fails, states of older versions cannot be restored."""
    order = Order(equal_edges(20, 3), 8, 4, seed=7)

    expected = "14 12 3 13 5 4 19 18 2 9 10 1 0 11 6 16 8 17 7 15"
    assert rows_of(order, 2).tolist() == list(map(int, expected.split()))


@pytest.mark.parametrize(
    ("drops_partial", "num_batches"), [(False, 4), (True, 3)], ids=["kept", "dropped"]
)
def test_a_partial_batch_is_kept_or_dropped(drops_partial, num_batches):
    order = Order(equal_edges(100, 10), 30, 30, drops_partial=drops_partial)

    assert order.num_batches == num_batches


def test_every_row_is_as_likely_at_every_place():
    """Chi-square of where rows go, by fours, over 400 epochs."""
    order = Order(equal_edges(100, 5), 40, 10, seed=3)
    counts = np.zeros((100, 100))
    for epoch in range(400):
        counts[rows_of(order, epoch), np.arange(100)] += 1

    places = counts.reshape(25, 4, 25, 4).sum(axis=(1, 3))
    expected = 400 * 4 * 4 / 100
    chi_square = ((places - expected) ** 2 / expected).sum()

    # 24 * 24 degrees of freedom, within five standard deviations.
    assert abs(chi_square - 576) < 5 * np.sqrt(2 * 576)


@pytest.mark.parametrize(("block_rows", "window_rows"), [(64, 2048), (16, 2048), (16, 8192)])
def test_batch_means_on_sorted_rows_vary_as_predicted(block_rows, window_rows):
    num_rows, batch_size = 40_000, 256
    variances = []
    for seed in range(12):
        order = Order(equal_edges(num_rows, block_rows), window_rows, batch_size, seed)
        rows = rows_of(order)[: num_rows // batch_size * batch_size]
        variances.append(rows.reshape(-1, batch_size).mean(axis=1).var())
    measured = np.mean(variances) / (num_rows**2 / 12 / batch_size)

    predicted = predict_deff(DataFacts(num_rows, 4, batch_size), block_rows, window_rows)

    assert measured == pytest.approx(predicted, rel=0.15)
