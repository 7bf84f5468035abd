"""What every source of sequences has to keep to if batches have rows of similar length."""

import contextlib
import json
from itertools import pairwise

import numpy as np
import pytest
from streaming.sequences import NUM_ROWS, SEQUENCES, lengths_of

from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.settings import LoaderSettings
from memfit.streaming.open_data import open_data
from memfit.streaming.views.sequence_lengths import measure

TOKENS = 400
# Small enough for several windows.
ROOM = 3_200_000
MB = 1_000_000


@pytest.fixture(scope="module", params=SEQUENCES)
def case(request, tmp_path_factory):
    made = SEQUENCES[request.param]
    return made, made.make(tmp_path_factory.mktemp("data"))


def make_loader(value, seed=1, times=1, tokens=TOKENS):
    source, layout = open_data(value)
    source = measure(source, tokens)
    budget = times * (ROOM + source.scratch_bytes)
    return Loader(source, layout, LoaderSettings(None, budget, seed, tokens=tokens))


def labels_of(batches):
    """The labels of each batch; the sequences must be theirs, and within the tokens."""
    labels = []
    for x, y in batches:
        lengths = lengths_of(y)
        expected = np.where(np.arange(x.shape[1]) < lengths[:, None], y[:, None] + 1, 0)
        assert np.array_equal(x, expected)
        assert x.size <= TOKENS
        assert x.shape[1] <= max(1.125 * lengths.max(), lengths.max() + 1)
        labels.append(y)
    return labels


def test_every_row_comes_once_an_epoch_in_as_many_batches(case):
    loader = make_loader(case[1])
    assert loader.mixing.window_rows < 0.6 * NUM_ROWS

    for _ in range(3):
        labels = labels_of(loader.run())
        assert sorted(np.concatenate(labels)) == list(range(NUM_ROWS))
        assert len(labels) == len(loader)


def test_batches_have_rows_of_similar_length_and_so_fewer_are_needed(case):
    loader = make_loader(case[1], times=2)

    padded = sum(x.size for x, _ in loader.run())

    assert 1 - lengths_of(range(NUM_ROWS)).sum() / padded < 0.2
    assert len(loader) < 0.6 * len(make_loader(case[1], seed=None))


def test_the_order_is_that_of_seed_and_epoch(case):
    loader, same = make_loader(case[1]), make_loader(case[1])
    first, second = (np.concatenate(labels_of(loader.run())) for _ in range(2))

    assert np.array_equal(first, np.concatenate(labels_of(same.run())))
    assert np.array_equal(second, np.concatenate(labels_of(same.run())))
    assert not np.array_equal(first, second)
    other = make_loader(case[1], seed=2)
    assert not np.array_equal(first, np.concatenate(labels_of(other.run())))


def test_without_a_seed_rows_keep_the_order_of_the_source(case):
    loader = make_loader(case[1], seed=None)

    labels = labels_of(loader.run())

    if case[0].keeps_order:
        assert np.concatenate(labels).tolist() == list(range(NUM_ROWS))
    assert len(labels) == len(loader)
    for one, following in pairwise(labels):
        # The next row would not have fitted, were it rounded up as lengths are.
        longest = lengths_of([*one, following[0]]).max()
        assert (len(one) + 1) * max(1.125 * longest, longest + 1) > TOKENS


def test_a_restored_stream_goes_on_exactly_where_it_stood(case):
    whole = make_loader(case[1])
    expected = np.concatenate([one for _ in range(3) for one in labels_of(whole.run())])
    for num_batches in (1, len(whole) // 2, len(whole) + 3):
        before = make_loader(case[1])
        used = []
        while len(used) < num_batches:
            with contextlib.closing(before.run()) as batches:
                used += [next(batches) for _ in range(min(num_batches - len(used), len(before)))]
                state = json.dumps(before.state().to_dict())

        after = make_loader(case[1], seed=9, times=2)
        after.restore(json.loads(state))
        rest = [one for _ in range(2) for one in labels_of(after.run())]

        got = np.concatenate([*labels_of(used), *rest])
        assert len(state) < 1000
        assert np.array_equal(got, expected[: len(got)])
        assert len(after) == len(whole)


def test_batches_by_their_number_are_those_of_the_epoch(case):
    loader = make_loader(case[1])
    expected = labels_of(make_loader(case[1]).run())

    for index in [*range(len(loader)), 7, 3, -1]:
        (found,) = labels_of([loader.get(index)])
        assert np.array_equal(found, expected[index])


def test_a_split_parts_the_same_rows_as_that_of_batches_of_one_size(case):
    train, rest = make_loader(case[1], times=3).split(0.8)
    source, layout = open_data(case[1])
    plain, _ = Loader(source, layout, LoaderSettings(32, 32 * MB)).split(0.8)

    ours = np.concatenate(labels_of(train.run()))

    assert sorted([*ours, *np.concatenate(labels_of(rest.run()))]) == list(range(NUM_ROWS))
    assert sorted(ours) == sorted(np.concatenate([y for _, y in plain.run()]))
