"""Sources that the conformance suite runs over: to add one, add a line to CASES.

A case writes `NUM_ROWS` rows into a folder and returns what a user gives to `memfit.stream`.
Row `i` has the label `i`, and features that `features_of` computes from it.
"""

import bz2
import gzip
import io
import shutil
import sqlite3
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import datasets
import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zarr
from PIL import Image
from pyarrow import feather, fs
from streaming.tf_examples import frame, make_example

from memfit.streaming.data.layout import Layout
from memfit.streaming.data.reading import ReadOptions
from memfit.streaming.data.source import Column
from memfit.streaming.ingest.ingest import ingest
from memfit.streaming.open_data import open_data
from memfit.streaming.sources import open_source
from memfit.streaming.sources.iterables import batches
from memfit.streaming.sources.sql import sql

NUM_ROWS = 1003
WIDTH = 64
# Height and width of pictures with room for the bytes of the features.
PICTURE = (8, 11)


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


def make_query(folder):
    names = [*(f"x{at:02}" for at in range(WIDTH)), "y"]
    with sqlite3.connect(folder / "data.db") as connection:
        connection.execute(f"CREATE TABLE samples ({', '.join(names)})")
        connection.executemany(
            f"INSERT INTO samples VALUES ({', '.join('?' * len(names))})",
            [[*map(float, x), int(y)] for x, y in map(Rows().__getitem__, range(NUM_ROWS))],
        )
    connection.close()
    query = "SELECT * FROM samples ORDER BY y"
    return Wide(sql(query, lambda: sqlite3.connect(folder / "data.db")))


def generate_rows():
    for index in range(NUM_ROWS):
        yield Rows()[index]


def generate_batches():
    for labels in np.array_split(all_labels(), 7):
        yield features_of(labels), labels


@dataclass(frozen=True)
class Wide:
    """Data in which every feature is a column of its own: `x00` and on, and `y`.

    Attributes:
        value: What to stream.
    """

    value: Any

    def open(self):
        return Packed(open_source(self.value)), Layout(("x", "y"))


class Packed:
    """A source whose features are one column, as the suite expects them."""

    is_shuffled = False

    def __init__(self, source):
        self._source = source
        self.schema = (Column("x", np.dtype("float32"), (WIDTH,)), source.schema[-1])
        self.num_rows = source.num_rows
        self.groups = source.groups
        self.scratch_bytes = source.scratch_bytes
        self.fingerprint = source.fingerprint
        self.check = source.check

    def read(self, start, stop):
        *features, y = self._source.read(start, stop).values()
        return {"x": np.stack(features, axis=1).astype("float32"), "y": y}


@dataclass(frozen=True)
class Elsewhere:
    """Data in a file system that only pyarrow knows.

    Attributes:
        path: A path in it, or a glob.
        folder: What it shows.
    """

    path: str
    folder: Any

    def open(self):
        return open_data(self.path, ReadOptions(filesystem=self.filesystem))

    @property
    def filesystem(self):
        return fs.SubTreeFileSystem(str(self.folder), fs.LocalFileSystem())


@dataclass(frozen=True)
class Drawn:
    """Pictures whose colours are the bytes of the features; each row is a class of its own.

    Attributes:
        folder: Where the pictures are.
    """

    folder: Any

    def open(self):
        return Read(open_source(self.folder, ReadOptions(image_size=PICTURE))), Layout(("x", "y"))


class Read(Packed):
    """A source of pictures, with the features that were drawn."""

    def read(self, start, stop):
        found = self._source.read(start, stop)
        data = found["x"].reshape(stop - start, -1)[:, : 4 * WIDTH]
        return {"x": np.ascontiguousarray(data).view("<f4"), "y": found["y"]}


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


def write_csv(folder, shift=0, name="data.csv", opener=open, delimiter=","):
    table = np.column_stack([features_of(all_labels(), shift), all_labels()])
    names = [*(f"x{at:02d}" for at in range(WIDTH)), "y"]
    with opener(folder / name, "wt") as file:
        file.write(delimiter.join(names) + "\n")
        rows = [[*(f"{one:.1f}" for one in row[:-1]), f"{row[-1]:.0f}"] for row in table.tolist()]
        file.writelines(delimiter.join(row) + "\n" for row in rows)
    return Wide(folder / name)


def write_tfrecord(folder, shift=0, name="data.tfrecord", opener=open):
    with opener(folder / name, "wb") as file:
        for label, features in zip(all_labels(), features_of(all_labels(), shift), strict=True):
            file.write(frame(make_example(x=features, y=[label])))
    return folder / name


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
        pq.write_table(part, folder / f"part-{at}.parquet", row_group_size=40)
    return folder


def write_arrow(folder, shift=0):
    with pa.ipc.new_file(folder / "data.arrow", make_table().schema) as file:
        file.write_table(make_table(shift), max_chunksize=40)
    return folder / "data.arrow"


def write_feather(folder, shift=0):
    feather.write_feather(make_table(shift), folder / "data.feather", "lz4", chunksize=40)
    return folder / "data.feather"


def write_elsewhere(folder, shift=0, write=write_parquet, path="data.parquet"):
    write(folder, shift)
    return Elsewhere(path, folder)


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


def open_hdf5(folder, write=write_hdf5):
    file = h5py.File(write(folder), "r")
    return file["x"], file["y"]


def open_zarr(folder, shift=0):
    group = zarr.open(write_zarr(folder, shift))
    return group["x"], group["y"]


def map_npy(folder, shift=0):
    """As `np.load` maps them: one whole, of the other the rows after those of another array."""
    x, y = write_npy(folder, shift)
    np.save(y, np.concatenate([all_labels() + 7, all_labels()]))
    return np.load(x, mmap_mode="r"), np.load(y, mmap_mode="r")[NUM_ROWS:]


def write_images(folder, shift=0):
    for label, features in zip(all_labels(), features_of(all_labels(), shift), strict=True):
        pixels = np.zeros((*PICTURE, 3), np.uint8)
        pixels.reshape(-1)[: 4 * WIDTH] = features.view(np.uint8)
        (folder / f"{label:04d}").mkdir(exist_ok=True)
        Image.fromarray(pixels).save(folder / f"{label:04d}" / "a.png", compress_level=1)
    return Drawn(folder)


def write_tar(folder, shift=0, name="data.tar", mode="w"):
    with tarfile.open(folder / name, mode) as archive:
        for label, features in zip(all_labels(), features_of(all_labels(), shift), strict=True):
            file = io.BytesIO()
            np.save(file, features)
            add_member(archive, f"{label:04d}.x.npy", file.getvalue())
            add_member(archive, f"{label:04d}.y.cls", str(label).encode())
    return folder / name


def add_member(archive, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


CASES = {
    "npy": Case(write_npy),
    "many files": Case(write_many),
    "npz": Case(write_npz),
    "arrays": Case(lambda _: (features_of(all_labels()), all_labels()), is_on_disk=False),
    "groups": Case(lambda _: Grouped(), is_on_disk=False),
    "store": Case(write_store, keeps_order=False),
    "csv": Case(write_csv),
    "csv.gz": Case(partial(write_csv, name="data.csv.gz", opener=gzip.open)),
    "tfrecord": Case(write_tfrecord),
    "tfrecord.gz": Case(partial(write_tfrecord, name="data.tfrecord.gz", opener=gzip.open)),
    "images": Case(write_images),
    "tar": Case(write_tar),
    "tar.gz": Case(partial(write_tar, name="data.tar.gz", mode="w:gz")),
    "tsv.bz2": Case(partial(write_csv, name="data.tsv.bz2", opener=bz2.open, delimiter="\t")),
    "parquet": Case(write_parquet),
    "parquet files": Case(write_parquet_files),
    "arrow": Case(write_arrow),
    "feather, compressed": Case(write_feather),
    "parquet elsewhere": Case(
        partial(write_elsewhere, write=write_parquet_files, path="part-*.parquet")
    ),
    "arrow elsewhere": Case(partial(write_elsewhere, write=write_arrow, path="data.arrow")),
    "hdf5": Case(write_hdf5),
    "hdf5, compressed": Case(write_hdf5_chunks),
    "zarr": Case(write_zarr),
    "mapped arrays": Case(map_npy),
    "hdf5 datasets": Case(open_hdf5, is_on_disk=False),
    "hdf5 datasets, compressed": Case(
        partial(open_hdf5, write=write_hdf5_chunks), is_on_disk=False
    ),
    "zarr arrays": Case(open_zarr),
    "objects": Case(lambda _: Rows(), is_on_disk=False),
    "objects with many rows": Case(lambda _: ManyRows(), is_on_disk=False),
    "objects with batches": Case(lambda _: Batched(), is_on_disk=False),
    "datasets": Case(make_dataset, is_on_disk=False),
    "datasets, a selection": Case(make_selection, is_on_disk=False),
    "queries": Case(make_query, is_on_disk=False),
    "generators": Case(lambda _: generate_rows, is_on_disk=False),
    "generators of batches": Case(lambda _: batches(generate_batches), is_on_disk=False),
}
