"""Sources that the conformance suite runs over: to add one, add a line to CASES.

A case writes `NUM_ROWS` rows into a folder and returns what a person gives to `memfit.stream`.
Row `i` has the label `i`, and features that `features_of` computes from it.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import datasets
import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zarr
from pyarrow import feather

from memfit.act.streaming.batched import batches
from memfit.act.streaming.ingest import ingest
from memfit.act.streaming.source import Column

NUM_ROWS = 1003
WIDTH = 64


def features_of(labels, shift=0):
    """The features of the rows with these labels: different in every row and place."""
    return (labels[:, None] * WIDTH + np.arange(WIDTH) + shift).astype("float32")


def all_labels():
    return np.arange(NUM_ROWS, dtype="int64")


class Grouped:
    """A source that is read in groups only, as Parquet is; the smallest there can be."""

    is_shuffled = False
    scratch_bytes = 0

    def __init__(self):
        self.schema = (
            Column("x", np.dtype("float32"), (WIDTH,)),
            Column("y", np.dtype("int64")),
        )
        self.num_rows = NUM_ROWS
        self.groups = np.append(np.arange(0, NUM_ROWS, 17), NUM_ROWS)

    def fingerprint(self):
        return "grouped"

    def check(self):
        pass

    def read(self, start, stop):
        labels = np.arange(start, stop)
        return {"x": features_of(labels), "y": labels}


class Rows:
    """An object with `__len__` and `__getitem__`, as a torch dataset is."""

    def __len__(self):
        return NUM_ROWS

    def __getitem__(self, index):
        return features_of(np.array([index]))[0], np.int64(index)


class ManyRows(Rows):
    """One that gives several rows at a time."""

    def __getitems__(self, indices):
        return [self[index] for index in indices]


class Batched(Rows):
    """One that gives them as arrays."""

    def __getitems__(self, indices):
        return features_of(np.array(indices)), np.array(indices)


def make_dataset(_):
    """As Hugging Face writes it: rows of one shape are lists that may differ in length."""
    table = pa.table({"x": pa.array(features_of(all_labels()).tolist(), pa.list_(pa.float32()))})
    return datasets.Dataset(table.append_column("y", [all_labels()]))


def make_selection(_):
    """A dataset that is a selection out of another, in another order."""
    whole = make_dataset(_)
    twice = datasets.concatenate_datasets([whole, whole]).select(range(2 * NUM_ROWS)[::-1])
    return twice.select(range(2 * NUM_ROWS - 1, NUM_ROWS - 1, -1))


def generate_rows():
    for index in range(NUM_ROWS):
        yield Rows()[index]


def generate_batches():
    for labels in np.array_split(all_labels(), 7):
        yield features_of(labels), labels


@dataclass(frozen=True)
class Case:
    """A kind of source.

    Attributes:
        make: Writes the data into a folder; returns what to stream. With `shift` the features are
            other ones, in the same files.
        keeps_order: Whether rows come in the order of their labels without a shuffle.
        is_on_disk: Whether a change of what was written has to be noticed.
    """

    make: Callable[..., Any]
    keeps_order: bool = True
    is_on_disk: bool = True


def write_npy(folder, shift=0):
    np.save(folder / "x.npy", features_of(all_labels(), shift))
    np.save(folder / "y.npy", all_labels())
    return folder / "x.npy", folder / "y.npy"


def write_many(folder, shift=0):
    for at, labels in enumerate(np.array_split(all_labels(), 7)):
        np.save(folder / f"x-{at}.npy", features_of(labels, shift))
        np.save(folder / f"y-{at}.npy", labels)
    return str(folder / "x-*.npy"), [folder / f"y-{at}.npy" for at in range(7)]


def write_npz(folder, shift=0):
    np.savez(folder / "data.npz", x=features_of(all_labels(), shift), y=all_labels())
    return folder / "data.npz"


def write_store(folder, shift=0):
    shutil.rmtree(folder / "cache", ignore_errors=True)
    return ingest(write_npy(folder, shift), folder / "cache", budget="1MB")


def make_table(shift=0):
    x = pa.array(features_of(all_labels(), shift).reshape(-1))
    return pa.table({"x": pa.FixedSizeListArray.from_arrays(x, WIDTH), "y": all_labels()})


def write_parquet(folder, shift=0):
    pq.write_table(make_table(shift), folder / "data.parquet", row_group_size=40)
    return folder / "data.parquet"


def write_parquet_files(folder, shift=0):
    """Folders of files, in the order of their names."""
    table = make_table(shift)
    for at, rows in enumerate(np.array_split(all_labels(), 5)):
        part = table.slice(rows[0], len(rows))
        pq.write_table(part, folder / f"part-{at}.parquet", row_group_size=30)
    return folder


def write_arrow(folder, shift=0):
    with pa.ipc.new_file(folder / "data.arrow", make_table().schema) as file:
        file.write_table(make_table(shift), max_chunksize=40)
    return folder / "data.arrow"


def write_feather(folder, shift=0):
    feather.write_feather(make_table(shift), folder / "data.feather", "lz4", chunksize=40)
    return folder / "data.feather"


def write_hdf5(folder, shift=0, **options):
    with h5py.File(folder / "data.h5", "w") as file:
        file.create_dataset("x", data=features_of(all_labels(), shift), **options)
        file["y"] = all_labels()
    return folder / "data.h5"


def write_hdf5_chunks(folder, shift=0):
    return write_hdf5(folder, shift, chunks=(40, 16), compression="gzip", shuffle=True)


def write_zarr(folder, shift=0):
    group = zarr.create_group(folder / "data.zarr", overwrite=True)
    group.create_array("x", data=features_of(all_labels(), shift), chunks=(16, 32))
    group.create_array("y", data=all_labels(), chunks=(35,))
    return folder / "data.zarr"


CASES = {
    "npy": Case(write_npy),
    "many files": Case(write_many),
    "npz": Case(write_npz),
    "arrays": Case(lambda _: (features_of(all_labels()), all_labels()), is_on_disk=False),
    "groups": Case(lambda _: Grouped(), is_on_disk=False),
    "store": Case(write_store, keeps_order=False),
    "parquet": Case(write_parquet),
    "parquet files": Case(write_parquet_files),
    "arrow": Case(write_arrow),
    "feather, compressed": Case(write_feather),
    "hdf5": Case(write_hdf5),
    "hdf5, compressed": Case(write_hdf5_chunks),
    "zarr": Case(write_zarr),
    "objects": Case(lambda _: Rows(), is_on_disk=False),
    "objects with many rows": Case(lambda _: ManyRows(), is_on_disk=False),
    "objects with batches": Case(lambda _: Batched(), is_on_disk=False),
    "datasets": Case(make_dataset, is_on_disk=False),
    "datasets, a selection": Case(make_selection, is_on_disk=False),
    "generators": Case(lambda _: generate_rows, is_on_disk=False),
    "generators of batches": Case(lambda _: batches(generate_batches), is_on_disk=False),
}
