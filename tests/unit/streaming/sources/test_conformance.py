"""What every source has to keep to: one suite over all cases."""

import contextlib
import json
import threading

import numpy as np
import pytest
from streaming.cases import CASES, NUM_ROWS, WIDTH, Drawn, Elsewhere, Grouped, Wide, features_of

from memfit.errors import DataChangedError
from memfit.streaming.data.layout import Layout
from memfit.streaming.data.source import allocate, read_into
from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.settings import LoaderSettings
from memfit.streaming.open_data import open_data

BATCH = 32
# Small enough for many windows.
BUDGET = 3_150_000


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    """A case and what it wrote; tests of this module do not change it."""
    made = CASES[request.param]
    return made, made.make(tmp_path_factory.mktemp("data"))


def opened(value):
    if isinstance(value, Grouped):
        return value, Layout(("x", "y"))
    if isinstance(value, Wide | Drawn | Elsewhere):
        return value.open()
    return open_data(value)


def make_loader(value, seed=1, times=1, **settings):
    source, layout = opened(value)
    budget = times * (BUDGET + source.scratch_bytes)
    return Loader(source, layout, LoaderSettings(BATCH, budget, seed, **settings))


def labels_of(batches):
    """The labels of all batches; the features must be theirs."""
    labels = []
    for x, y in batches:
        assert np.array_equal(x, features_of(y))
        labels.append(y)
    return np.concatenate(labels) if labels else np.array([], int)


def test_rows_read_in_any_range_are_those_rows(case):
    source, _ = opened(case[1])
    whole = source.read(0, NUM_ROWS)
    rng = np.random.default_rng(0)

    for start, stop in np.sort(rng.integers(0, NUM_ROWS + 1, (20, 2)), axis=1).tolist():
        for name, values in source.read(start, stop).items():
            assert np.array_equal(values, whole[name][start:stop])
    ranges = [(900, 1003), (0, 1), (5, 200)]
    into = allocate(source.schema, NUM_ROWS)
    read_into(source, ranges, into)
    for name, values in into.items():
        expected = np.concatenate([whole[name][start:stop] for start, stop in ranges])
        assert np.array_equal(values[: len(expected)], expected)


def test_the_schema_says_what_batches_hold(case):
    source, layout = opened(case[1])
    columns = {one.name: one for one in source.schema}
    x, y = layout.arrange(columns)

    assert source.num_rows == NUM_ROWS
    assert (x.dtype, x.shape, x.is_ragged) == (np.dtype("float32"), (WIDTH,), False)
    assert (y.dtype, y.shape) == (np.dtype("int64"), ())


def test_every_row_comes_once_an_epoch(case):
    loader = make_loader(case[1])
    assert loader.mixing.window_rows < NUM_ROWS / 4

    for _ in range(3):
        assert sorted(labels_of(loader.run())) == list(range(NUM_ROWS))


def test_the_order_is_that_of_seed_and_epoch(case):
    loader, same = make_loader(case[1]), make_loader(case[1])
    first, second = labels_of(loader.run()), labels_of(loader.run())

    assert np.array_equal(first, labels_of(same.run()))
    assert np.array_equal(second, labels_of(same.run()))
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, labels_of(make_loader(case[1], seed=2).run()))


def test_without_a_seed_rows_keep_the_order_of_the_source(case):
    loader = make_loader(case[1], seed=None)

    first = labels_of(loader.run())

    if case[0].keeps_order:
        assert first.tolist() == list(range(NUM_ROWS))
    assert np.array_equal(first, labels_of(loader.run()))


@pytest.mark.parametrize("drop_remainder", [False, True])
def test_the_last_batch_is_kept_or_dropped_and_length_knows_it(case, drop_remainder):
    loader = make_loader(case[1], drop_remainder=drop_remainder)

    sizes = [len(y) for _, y in loader.run()]

    whole, rest = divmod(NUM_ROWS, BATCH)
    assert sizes == [BATCH] * whole + ([] if drop_remainder else [rest])
    assert len(loader) == len(sizes)


def test_a_restored_stream_goes_on_exactly_where_it_stood(case):
    rng = np.random.default_rng(5)
    whole = make_loader(case[1])
    expected = np.concatenate([labels_of(whole.run()) for _ in range(3)])
    for num_batches in rng.integers(1, 2 * len(whole) + 1, 10).tolist():
        before = make_loader(case[1])
        used = []
        while len(used) < num_batches:
            with contextlib.closing(before.run()) as batches:
                used += [next(batches) for _ in range(min(num_batches - len(used), len(before)))]
                state = json.dumps(before.state().to_dict())

        after = make_loader(case[1], seed=9)
        after.restore(json.loads(state))
        rest = [labels_of(after.run()) for _ in range(2)]

        got = np.concatenate([labels_of(used), *rest])
        assert len(state) < 1000
        assert np.array_equal(got, expected[: len(got)])


def test_batches_by_their_number_are_those_of_the_epoch(case):
    loader = make_loader(case[1])
    expected = [y for _, y in make_loader(case[1]).run()]

    for index in [*range(len(loader)), 7, 3, -1]:
        x, y = loader.get(index)
        assert np.array_equal(y, expected[index])
        assert np.array_equal(x, features_of(y))
    assert loader.state().batch == 0


def test_several_batches_at_a_time_are_the_same_rows(case):
    one, several = make_loader(case[1]), make_loader(case[1])

    sizes = []
    parts = []
    for x, y in several.run(at_a_time=4):
        sizes.append(len(y))
        parts.append((x, y))

    assert np.array_equal(labels_of(parts), labels_of(one.run()))
    assert set(sizes[:-2]) == {4 * BATCH}
    assert all(size % BATCH == 0 for size in sizes[:-1])


def test_a_split_parts_the_rows_for_good(case):
    train, rest = make_loader(case[1], times=2).split(0.9)
    again, _ = make_loader(case[1], times=3, seed=4).split(0.9)

    ours, theirs = labels_of(train.run()), labels_of(rest.run())

    assert len(ours) == round(0.9 * NUM_ROWS)
    assert sorted([*ours, *theirs]) == list(range(NUM_ROWS))
    assert sorted(ours) == sorted(labels_of(again.run()))
    # From all over the data, not from its end.
    assert 0.3 < theirs.mean() / NUM_ROWS < 0.7


def test_no_thread_outlives_a_pass_that_is_left(case):
    loader = make_loader(case[1])

    for _ in loader.run():
        break

    assert not [one for one in threading.enumerate() if one.name == "memfit-stream"]


@pytest.mark.parametrize("name", [name for name, one in CASES.items() if one.is_on_disk])
def test_data_that_changes_is_noticed(name, tmp_path):
    value = CASES[name].make(tmp_path)
    loader = make_loader(value)
    labels_of(loader.run())
    state = loader.state().to_dict()

    CASES[name].make(tmp_path, shift=1)

    with pytest.raises(DataChangedError, match="has changed since the stream was made"):
        next(loader.run())
    with pytest.raises(DataChangedError, match="belongs to other data"):
        make_loader(value).restore(state)
