"""Arrays larger than the budget are on disk, and nobody needs them any more."""

import weakref

import numpy as np
import pytest

from memfit.act.streaming.cache import find_cache
from memfit.act.streaming.layout import open_data
from memfit.act.streaming.loader import Loader, Settings
from memfit.act.streaming.spilling import spill

BUDGET = 8_000_000


@pytest.fixture(autouse=True)
def streams(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return find_cache()


def make_arrays(rows=100_000):
    x = np.arange(rows * 30, dtype="float32").reshape(rows, 30)
    return x, np.arange(rows)


def make_loader(value):
    source, layout = open_data(value)
    return Loader(spill(source, BUDGET), layout, Settings(256, BUDGET, seed=1))


@pytest.mark.parametrize("shape", [lambda x, y: (x, y), lambda x, y: ([x[:7], x[7:]], {"a": y})])
def test_the_source_does_not_hold_what_it_spilled(shape):
    x, y = make_arrays()
    alive = weakref.ref(x)

    loader = make_loader(shape(x, y))
    del x, y

    assert alive() is None
    rows = [(a[0], b["a"][0] if isinstance(b, dict) else b[0]) for a, b in loader.run()]
    assert all(row[0] == np.float32(label * 30) for row, label in rows)


def test_rows_and_order_are_those_of_arrays_in_memory():
    data = make_arrays()
    source, layout = open_data(data)
    held = Loader(source, layout, Settings(256, BUDGET, seed=1))

    spilled = make_loader(data)

    for (x, y), (other_x, other_y) in zip(held.run(), spilled.run(), strict=True):
        assert np.array_equal(x, other_x)
        assert np.array_equal(y, other_y)
    spilled.restore(held.state().to_dict())


def test_arrays_within_the_budget_stay_where_they_are(streams):
    x, y = make_arrays(60_000)

    loader = make_loader((x, y))

    assert not streams.exists()
    assert np.shares_memory(loader.source.read(0, 5)["x"], x)


def test_mapped_files_stay_where_they_are(streams, tmp_path):
    np.save(tmp_path / "x.npy", make_arrays()[0])

    loader = make_loader(np.load(tmp_path / "x.npy", mmap_mode="r")[10:])

    assert not streams.exists()
    assert loader.source.num_rows == 99_990


def test_the_same_arrays_are_written_once_and_others_anew(streams):
    x, y = make_arrays()
    make_loader((x, y))
    first = {one: one.stat().st_ino for one in streams.iterdir()}
    make_loader((x, y))
    assert {one: one.stat().st_ino for one in streams.iterdir()} == first

    x[71_234, 3] = 0  # one value that no sample would see
    loader = make_loader((x, y))

    assert len(list(streams.iterdir())) == len(first) + 1
    assert loader.source.read(71_234, 71_235)["x"][0, 3] == 0
