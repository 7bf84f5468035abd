"""Rows drawn by weights: as often as these say, anew in every epoch, in little memory."""

import contextlib

import numpy as np
import pytest
from streaming.cases import Grouped, features_of
from streaming.ingest.test_ingest import Sentences

from memfit.errors import DataChangedError, UsageError
from memfit.streaming.data.layout import Layout, lay_out
from memfit.streaming.data.source import allocate
from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.settings import LoaderSettings
from memfit.streaming.open_data import open_data
from memfit.streaming.views import oversample
from memfit.streaming.views.class_weights import weigh_classes
from memfit.streaming.views.oversample import draw_rows

NUM_ROWS = 5000
LABELS = np.arange(NUM_ROWS)
BUDGET = 5_600_000


@pytest.fixture
def files(tmp_path):
    np.save(tmp_path / "x.npy", features_of(LABELS))
    np.save(tmp_path / "y.npy", LABELS)
    return tmp_path / "x.npy", tmp_path / "y.npy"


def make_loader(source, oversample, seed=1, **settings):
    drawn, layout = draw_rows(*open_data(source), oversample)
    return Loader(
        drawn, layout, LoaderSettings(32, settings.pop("budget", BUDGET), seed, **settings)
    )


def labels_of(batches):
    labels = []
    for x, y in batches:
        assert np.array_equal(x, features_of(y))
        labels.append(y)
    return np.concatenate(labels)


def counts_of(loader, epochs=1):
    drawn = [np.bincount(labels_of(loader.run()), minlength=NUM_ROWS) for _ in range(epochs)]
    return np.stack(drawn)


def test_rows_come_as_often_as_they_weigh(files):
    weights = np.random.default_rng(0).gamma(0.3, size=NUM_ROWS)
    loader = make_loader(files, weights)

    counts = counts_of(loader, epochs=30)

    expected = weights / weights.mean()
    assert (counts.sum(axis=1) == NUM_ROWS).all()
    assert (np.abs(counts - expected) < 2).all()
    # Over the epochs the mean is what was asked for: the variance of a count is below 1/2.
    off = (counts.mean(axis=0) - expected) / np.sqrt(0.5 / 30)
    assert np.abs(off).max() < 5
    assert abs(off.mean()) < 0.05


def test_with_equal_weights_every_row_comes_once(files):
    assert (counts_of(make_loader(files, np.full(NUM_ROWS, 0.1))) == 1).all()


def test_a_row_that_weighs_nothing_never_comes(files):
    weights = (LABELS % 50 == 7).astype(float)
    weights[2000:4000] = 0

    counts = counts_of(make_loader(files, weights), epochs=3)

    assert (counts[:, weights == 0] == 0).all()
    assert (counts[:, weights > 0] > 0).all()


def test_one_row_may_be_all(files):
    weights = np.zeros(NUM_ROWS)
    weights[-1] = 3

    assert set(labels_of(make_loader(files, weights).run())) == {NUM_ROWS - 1}


def test_the_draw_is_that_of_seed_and_epoch(files):
    weights = LABELS % 7
    first = make_loader(files, weights)
    one, two = labels_of(first.run()), labels_of(first.run())
    same = make_loader(files, weights)
    other = make_loader(files, weights, seed=2)

    assert np.array_equal(one, labels_of(same.run()))
    assert np.array_equal(two, labels_of(same.run()))
    assert sorted(one) != sorted(two)
    assert sorted(one) != sorted(labels_of(other.run()))


def test_it_does_not_depend_on_how_rows_are_read(files):
    source, _ = draw_rows(*open_data(files), LABELS % 7)
    whole = source.read(0, NUM_ROWS)["y"]

    for start, stop in [(0, 1), (1, 6), (63, 64), (1000, 4999), (4999, 5000), (7, 7)]:
        assert np.array_equal(source.read(start, stop)["y"], whole[start:stop])


def test_nor_on_how_much_is_read_at_a_time(files, monkeypatch):
    ranges = [(900, 1003), (0, 1), (5, 4200)]

    def read():
        source, _ = draw_rows(*open_data(files), LABELS % 7)
        into = allocate(source.schema, 4299)
        source.read_into(ranges, into)
        return source, into

    source, expected = read()
    whole = source.read(0, NUM_ROWS)["y"]
    monkeypatch.setattr(oversample, "_CHUNK_BYTES", 20_000)
    monkeypatch.setattr(oversample, "_MOST_PLACES", 77)
    smaller, found = read()

    assert smaller.scratch_bytes < source.scratch_bytes / 5
    assert np.array_equal(found["x"], expected["x"])
    assert np.array_equal(found["y"], np.concatenate([whole[one:two] for one, two in ranges]))


def test_classes_may_have_weights(tmp_path):
    rare = (np.arange(NUM_ROWS) % 100 == 0).astype("int8")

    loader = make_loader((LABELS, rare), {0: 1, 1: 99})

    drawn = np.concatenate([y for _, y in loader.run()])
    assert abs(drawn.mean() - 0.5) < 0.01


def test_a_column_may_have_them_and_is_no_input_then(tmp_path):
    np.savez(tmp_path / "data.npz", a=LABELS, b=LABELS, often=LABELS % 2)
    source, layout = open_data(tmp_path / "data.npz")
    drawn, layout = draw_rows(source, layout, "often")

    for (inputs,) in Loader(drawn, layout, LoaderSettings(32, BUDGET, seed=1)).run():
        assert set(inputs) == {"a", "b"}
        assert (inputs["a"] % 2 == 1).all()


def test_sequences_are_drawn_too():
    source = Sentences()
    drawn, layout = draw_rows(source, lay_out(source.schema), np.arange(500) % 3)

    for x, y in Loader(drawn, layout, LoaderSettings(32, BUDGET, seed=1)).run():
        assert (y % 3 > 0).all()
        assert np.array_equal((x == y[:, None]).sum(axis=1)[y > 0], (y % 10)[y > 0])


def test_a_restored_stream_goes_on_exactly(files):
    weights = LABELS % 7
    expected = labels_of(make_loader(files, weights).run())
    before, after = make_loader(files, weights), make_loader(files, weights, seed=5)
    with contextlib.closing(before.run()) as batches:
        used = labels_of([next(batches) for _ in range(40)])
        after.restore(before.state().to_dict())

    assert np.array_equal(np.concatenate([used, labels_of(after.run())]), expected)


def test_a_state_belongs_to_its_weights(files):
    state = make_loader(files, LABELS % 7).state().to_dict()

    with pytest.raises(DataChangedError):
        make_loader(files, LABELS % 5).restore(state)


def test_a_split_draws_for_training_only_and_parts_the_rows(files):
    train, rest = make_loader(files, LABELS % 7, budget=3 * BUDGET).split(0.9)

    ours, theirs = labels_of(train.run()), labels_of(rest.run())

    assert set(ours).isdisjoint(theirs)
    assert len(set(theirs)) == len(theirs) == NUM_ROWS - len(ours)
    assert (ours % 7 > 0).all()


def test_drawn_rows_may_weigh_by_class_as_well():
    drawn = draw_rows(*open_data((LABELS, LABELS % 2)), LABELS % 3)
    loader = Loader(*weigh_classes(*drawn, {1: 4.0}), LoaderSettings(32, 4 * BUDGET, seed=1))

    for x, y, weight in loader.run():
        assert (x % 3 > 0).all()
        assert np.array_equal(weight, 1 + 3.0 * y)
    train, rest = loader.split(0.5)
    assert {float(one) for _, _, weight in train.run() for one in weight} == {1.0, 4.0}
    assert {float(one) for _, _, weight in rest.run() for one in weight} == {1.0}


@pytest.mark.parametrize(
    ("oversample", "told"),
    [
        (np.ones(3), "an array with a number for each of 5000 rows. Received: ndarray"),
        (np.zeros(NUM_ROWS), "must not all be 0"),
        (np.where(LABELS == 70, -1, 1), "Received: -1.0 among the rows from 0 to "),
        (np.where(LABELS == 70, np.nan, 1), "Received: nan among the rows from 0 to "),
        ("z", "oversample must name a column of numbers. Received: 'z'. Columns: x, y."),
        ("x", "oversample must name a column of numbers. Received: 'x'."),
        ({}, "oversample must be a dict of weights by label."),
        (3, "Received: int of shape"),
    ],
)
def test_what_cannot_be_weights_is_refused(files, oversample, told):
    with pytest.raises(UsageError) as caught:
        make_loader(files, oversample)

    assert told in str(caught.value)


def test_data_in_groups_is_refused():
    with pytest.raises(UsageError, match="this is read in groups"):
        draw_rows(Grouped(), Layout(("x", "y")), np.ones(1003))
