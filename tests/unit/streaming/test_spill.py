"""Arrays larger than the budget are on disk, and nobody needs them any more."""

import tracemalloc
import weakref
from functools import partial

import h5py
import numpy as np
import pytest
import zarr

from memfit.errors import DataChangedError, DataError
from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.settings import LoaderSettings
from memfit.streaming.open_data import open_data
from memfit.streaming.spill import spill
from memfit.streaming.store.cache_folder import find_cache

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
    return Loader(spill(source, BUDGET), layout, LoaderSettings(256, BUDGET, seed=1))


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
    held = Loader(source, layout, LoaderSettings(256, BUDGET, seed=1))

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


def map_file(folder, x):
    np.save(folder / "x.npy", x)
    return np.load(folder / "x.npy", mmap_mode="r")


def open_hdf5(folder, x, **options):
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("x", data=x, **options)
    return h5py.File(folder / "x.h5")["x"]


def open_zarr(folder, x):
    return zarr.create_array(folder / "x.zarr", data=x, chunks=(1000, 30))


ON_DISK = {
    "mapped": map_file,
    "hdf5": open_hdf5,
    "hdf5, in chunks": partial(open_hdf5, chunks=(1000, 30)),
    "zarr": open_zarr,
}


@pytest.mark.parametrize("make", ON_DISK.values(), ids=ON_DISK)
def test_what_is_on_disk_stays_there_and_is_not_read_whole(streams, tmp_path, make):
    x, _ = make_arrays()
    value = make(tmp_path, x)

    tracemalloc.start()
    loader = make_loader(value)
    next(loader.run())
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert not streams.exists()
    assert peak_bytes < BUDGET < x.nbytes
    assert sorted(row for (batch,) in loader.run() for row in batch[:, 0]) == x[:, 0].tolist()


def test_an_array_of_zarr_may_be_in_any_store():
    x, y = make_arrays(1000)
    loader, other = (
        make_loader((zarr.array(one, chunks=(100, 30)), zarr.array(y, chunks=(40,))))
        for one in (x, x + 1)
    )

    batches = list(loader.run())

    assert all(np.array_equal(x[labels], rows) for rows, labels in batches)
    assert sorted(one for _, labels in batches for one in labels) == y.tolist()
    with pytest.raises(DataChangedError, match="belongs to other data"):
        other.restore(loader.state().to_dict())


def test_a_dataset_is_read_also_when_its_file_is_closed(tmp_path):
    x, _ = make_arrays(1000)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = x
        file["same"] = h5py.SoftLink("/x")
        assert len(next(make_loader(file["same"]).run())[0]) == 256
    with h5py.File(tmp_path / "x.h5") as file:
        kept = file["same"]
        loader = make_loader(kept)

    assert sorted(row for (batch,) in loader.run() for row in batch[:, 0]) == x[:, 0].tolist()
    with pytest.raises(DataError, match=r"dataset is closed.*give the path"):
        make_loader(kept)


def test_a_dataset_that_is_made_of_others_is_read_from_these(tmp_path):
    x, _ = make_arrays(1000)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = x
        layout = h5py.VirtualLayout(x.shape, x.dtype)
        layout[:] = h5py.VirtualSource(file["x"])
        file.create_virtual_dataset("all", layout)
    with h5py.File(tmp_path / "x.h5") as file:
        loader = make_loader(file["all"])

    assert sorted(row for (batch,) in loader.run() for row in batch[:, 0]) == x[:, 0].tolist()


def test_a_mapped_array_that_can_be_written_to_is_read_as_it_is(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(1000))
    x = np.load(tmp_path / "x.npy", mmap_mode="c")
    x[:] = 7

    (batch,) = next(make_loader(x).run())

    assert set(batch) == {7}


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
