"""Objects that give rows by their number: what they may give, and what is refused."""

import numpy as np
import pytest

from memfit.errors import DataChangedError, DataError, UsageError
from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.settings import LoaderSettings
from memfit.streaming.open_data import open_data


class Rows:
    """Rows that a function of their number makes."""

    def __init__(self, make, number=40):
        self.make = make
        self.number = number

    def __len__(self):
        return self.number

    def __getitem__(self, index):
        return self.make(index)


class Many(Rows):
    """Rows that come several at a time."""

    def __init__(self, make_many, number=40):
        super().__init__(np.float32, number)
        self.make_many = make_many

    def __getitems__(self, indices):
        return self.make_many(indices)


def batches_of(value, **settings):
    loader = Loader(
        *open_data(value), LoaderSettings(**{"batch_size": 40, "budget_bytes": 8_000_000})
    )
    return list(loader.run(**settings))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda i: i, (1,)),
        (lambda i: (i,), (1,)),
        (lambda i: [i, i], ([1, 1],)),
        (lambda i: (i, 2 * i, 0.5), (1, 2, 0.5)),
        (lambda i: ((i, 2 * i), 3), ((1, 2), 3)),
        (lambda i: ({"a": i, "b": [i]}, 3), ({"a": 1, "b": [1]}, 3)),
        (lambda i: {"a": i, "b": 3 * i}, ({"a": 1, "b": 3},)),
    ],
)
def test_rows_keep_their_structure(make, expected):
    (batch,) = batches_of(Rows(make))

    def second_row(tree):
        if isinstance(tree, dict):
            return {key: second_row(one) for key, one in tree.items()}
        return tuple(map(second_row, tree)) if isinstance(tree, tuple) else tree[1].tolist()

    assert second_row(batch) == expected


def test_an_object_may_be_only_the_features():
    ((x, y),) = batches_of((Rows(lambda i: [i, i]), np.arange(40)))

    assert np.array_equal(x[:, 0], y)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda i: np.zeros(3 if i < 7 else 4), r"Row 7 of the Rows differs.*\(4,\).*\(3,\)"),
        (lambda i: 1 if i == 7 else 0.5, r"Row 7 .* has int64 \(\), row 0 has float64 \(\)"),
        (lambda i: (i, i) if i < 7 else i, r"Row 7 .* has the columns values; row 0 has x, y"),
    ],
)
def test_a_row_unlike_the_first_is_named(make, says):
    with pytest.raises(DataError, match=says):
        batches_of(Rows(make))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda i: (i,) * 4, "Row 0 of the Rows is a tuple of 4"),
        (lambda i: {"name": "Ann"}, r"has text in 'name': 'Ann'.*an id for each text"),
        (lambda i: (i, None), "has a NoneType in 'y'"),
    ],
)
def test_rows_that_cannot_be_arrays_are_refused_before_training(make, says):
    with pytest.raises(DataError, match=says):
        open_data(Rows(make))


def test_an_error_of_the_object_passes_with_the_row():
    def fail(index):
        if index == 7:
            raise KeyError("no such image")
        return index

    with pytest.raises(KeyError, match="no such image") as caught:
        batches_of(Rows(fail))

    assert caught.value.__notes__ == ["memfit.stream was reading row 7 of the Rows."]


def test_an_error_of_many_rows_passes_with_the_rows():
    with pytest.raises(ZeroDivisionError) as caught:
        batches_of(Many(lambda indices: 1 // 0))

    assert caught.value.__notes__ == ["memfit.stream was reading rows 0 to 39 of the Many."]


def test_fewer_rows_than_asked_for_are_refused():
    with pytest.raises(DataError, match="returned 39 rows for 40 numbers, from 0 to 39"):
        batches_of(Many(lambda indices: [np.float32(one) for one in indices[1:]]))
    with pytest.raises(DataError, match=r"'values' came as float32 \(39,\). Expected .*\(40,\)"):
        batches_of(Many(lambda indices: np.float32(indices[1:])))


def test_an_object_without_rows_is_refused():
    with pytest.raises(DataError, match=r"The Rows has no rows: its len\(\) is 0"):
        open_data(Rows(lambda i: i, 0))


def test_an_object_that_grows_is_noticed():
    rows = Rows(lambda i: i)
    loader = Loader(*open_data(rows), LoaderSettings(8, 8_000_000))
    rows.number += 1

    with pytest.raises(DataChangedError, match="had 40 rows and now has 41"):
        next(loader.run())


def test_a_pydataset_is_refused_since_it_gives_batches():
    class PyDataset(Rows):
        pass

    class Mine(PyDataset):
        pass

    with pytest.raises(
        UsageError, match="Cannot stream the Mine row by row: a PyDataset gives batches"
    ):
        open_data(Mine(lambda i: i))


def test_a_state_belongs_to_the_rows_but_not_to_what_is_random_in_them():
    rng = np.random.default_rng(0)

    def fingerprint(make):
        return open_data(Rows(make))[0].fingerprint()

    assert fingerprint(lambda i: i) != fingerprint(lambda i: i + 1)
    assert fingerprint(lambda i: (rng.random(), i)) == fingerprint(lambda i: (rng.random(), i))
    assert fingerprint(lambda i: (rng.random(), i)) != fingerprint(lambda i: (rng.random(), -i))
