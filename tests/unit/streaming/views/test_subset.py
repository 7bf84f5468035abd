"""Parts of a stream for several processes: no row twice, none forgotten, as many batches each."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memfit.errors import UsageError
from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.settings import LoaderSettings
from memfit.streaming.open_data import open_data

# Windows of some hundred rows.
BUDGET = 3_200_000
WIDTH = 64


def make_loader(num_rows, batch_size, seed, budget=BUDGET, **asked):
    labels = np.arange(num_rows)
    x = np.repeat(labels[:, None].astype("float32"), WIDTH, axis=1)
    return Loader(*open_data((x, labels)), LoaderSettings(batch_size, budget, seed, **asked))


def labels_of(batches):
    found = list(batches)
    assert all(np.array_equal(x[:, 0], y) for x, y in found)
    return [y.tolist() for _, y in found]


def rows_of(loader):
    return sorted(itertools.chain.from_iterable(labels_of(loader.run())))


@settings(max_examples=25, deadline=None)
@given(
    num_rows=st.integers(8, 900),
    batch_size=st.integers(1, 40),
    count=st.integers(1, 8),
    seed=st.none() | st.integers(0, 3),
    drop=st.booleans(),
)
def test_shards_have_every_row_once_and_as_many_batches(num_rows, batch_size, count, seed, drop):
    if drop:
        batch_size = min(batch_size, num_rows // count)
    data = make_loader(num_rows, batch_size, seed, drop_remainder=drop)
    shards = [data.shard(index, count) for index in range(count)]

    for _ in range(2):
        epochs = [labels_of(one.run()) for one in shards]

        (num_batches,) = {len(one) for one in epochs}
        assert {len(one) for one in shards} == {num_batches}
        rows = list(itertools.chain.from_iterable(itertools.chain.from_iterable(epochs)))
        assert len(set(rows)) == len(rows)
        assert all(len(batch) == batch_size for one in epochs for batch in one[:-1])
        left_out = num_rows - len(rows)
        if drop:
            assert left_out < count * (batch_size + 1)
        else:
            assert left_out == (0 if num_rows // count % batch_size else num_rows % count)


@settings(max_examples=15, deadline=None)
@given(
    count=st.integers(1, 4),
    by=st.integers(0, 3),
    index=st.integers(0, 3),
    used=st.integers(0, 30),
    seed=st.none() | st.integers(0, 3),
)
def test_the_state_of_one_shard_is_good_for_all(count, by, index, used, seed):
    def shard(number):
        return make_loader(777, 16, seed).shard(number % count, count)

    saved, expected = shard(by), shard(index)
    whole = [batch for _ in range(4) for batch in labels_of(expected.run())]
    used = min(used, 2 * len(saved))
    used += used % len(saved) == 1  # a look at one batch does not count
    for _ in range(used // len(saved)):
        labels_of(saved.run())
    labels_of(itertools.islice(saved.run(), used % len(saved)))

    restored = shard(index)
    restored.restore(saved.state().to_dict())

    rest = [batch for _ in range(2) for batch in labels_of(restored.run())]
    assert rest == whole[used : used + len(rest)]


def test_every_epoch_deals_the_rows_of_a_shuffled_stream_anew():
    shard = make_loader(500, 16, 1).shard(0, 2)

    first, second = (rows_of(shard) for _ in range(2))

    assert len(first) == len(second) == 250
    assert first != second


def test_the_sides_of_a_split_are_dealt_each():
    sides = make_loader(500, 16, 1, budget=2 * BUDGET).split(0.8)

    rows = [rows_of(side.shard(index, 2)) for side in sides for index in range(2)]

    assert [len(one) for one in rows] == [200, 200, 50, 50]
    assert sorted(itertools.chain(*rows)) == list(range(500))


def test_a_state_of_another_number_of_shards_is_refused():
    data = make_loader(500, 16, 1)

    with pytest.raises(UsageError, match=r"made with num_shards=2; this stream has num_shards=4"):
        data.shard(0, 4).restore(data.shard(0, 2).state().to_dict())


@pytest.mark.parametrize(("index", "count"), [(2, 2), (0, 501), (-1, 2), (0, 0), (0, 1.5)])
def test_a_shard_that_is_not_there_is_refused(index, count):
    with pytest.raises(UsageError, match=r"shard|must be a whole number"):
        make_loader(500, 16, 1).shard(index, count)


def test_a_shard_is_not_dealt_again_and_says_which_it_is():
    shard = make_loader(500, 16, 1).shard(1, 4)

    assert "8 batches of 16, shuffled" in str(shard)
    assert ", shard 1 of 4\n" in str(shard)
    with pytest.raises(UsageError, match="is shard 1 of 4"):
        shard.shard(0, 2)
