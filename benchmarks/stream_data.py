"""The data that `stream.py` reads, in the format of every loader that is compared.

Rows are 100 float32 and a label, sorted by the label: the worst case for a shuffle. The label of
row `i` is `i`, so that lost rows and rows that come twice are seen.
"""

import contextlib
import io
import sqlite3
import struct
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

WIDTH = 100
ROW_BYTES = 4 * (WIDTH + 1)
PIXELS = 64
CLASSES = 10
# Rows of a row group: the 3 MB of it are what a loader must decode at once.
GROUP_ROWS = 8_192
# What takes a loader more than 20 us of Python a row to write is written for fewer rows.
FEW_ROWS = 50_000
_CHUNK = 100_000
# Where few rows are written, there are at least so many groups or shards of them.
_PARTS = 16


def make_rows(start: int, stop: int) -> tuple[Any, Any]:
    """Returns features and labels of some rows."""
    labels = np.arange(start, stop, dtype="float32")
    return labels[:, None] % 1000 / 1000 + np.linspace(0, 0.5, WIDTH, dtype="float32"), labels


def in_chunks(num_rows: int, size: int = _CHUNK) -> Iterator[tuple[Any, Any]]:
    """Gives all rows, some at a time."""
    for start in range(0, num_rows, size):
        yield make_rows(start, min(start + size, num_rows))


def write_npy(folder: Path, num_rows: int) -> None:
    """Writes `x.npy` and `y.npy`."""
    float32 = np.dtype("float32")
    x = np.lib.format.open_memmap(folder / "x.npy", "w+", float32, (num_rows, WIDTH))
    y = np.lib.format.open_memmap(folder / "y.npy", "w+", float32, (num_rows,))
    for number, (features, labels) in enumerate(in_chunks(num_rows)):
        at = number * _CHUNK
        x[at : at + len(labels)], y[at : at + len(labels)] = features, labels
    x.flush()
    y.flush()


def write_store(folder: Path, num_rows: int) -> None:
    """Shuffles `x.npy` and `y.npy` once, into `store`."""
    from memfit.streaming.ingest.ingest import ingest

    ingest((folder / "x.npy", folder / "y.npy"), folder / "store")


def write_parquet(folder: Path, num_rows: int) -> None:
    """Writes `data.parquet` as pyarrow does by default, but for the size of its row groups."""
    import pyarrow.parquet as pq

    group_rows = min(GROUP_ROWS, num_rows // _PARTS)
    with pq.ParquetWriter(folder / "data.parquet", make_table(*make_rows(0, 1)).schema) as file:
        for x, y in in_chunks(num_rows, 8 * group_rows):
            file.write_table(make_table(x, y), row_group_size=group_rows)


def make_table(x: Any, y: Any) -> Any:
    """Returns rows as Arrow has them."""
    import pyarrow as pa

    lists = pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), WIDTH)
    return pa.table({"x": lists, "y": y})


def write_arrow(folder: Path, num_rows: int) -> None:
    """Writes `data.arrow`."""
    import pyarrow as pa

    with pa.ipc.new_file(folder / "data.arrow", make_table(*make_rows(0, 1)).schema) as file:
        for x, y in in_chunks(num_rows):
            file.write_table(make_table(x, y), max_chunksize=min(GROUP_ROWS, num_rows // _PARTS))


def write_hugging_face(folder: Path, num_rows: int) -> None:
    """Writes `hf`, a folder of Hugging Face datasets."""
    import datasets
    import pyarrow as pa

    tables = [make_table(x, y) for x, y in in_chunks(num_rows)]
    datasets.Dataset(pa.concat_tables(tables)).save_to_disk(folder / "hf", num_shards=_PARTS)


def write_tfrecord(folder: Path, num_rows: int) -> None:
    """Writes records of `tf.train.Example`.

    All have the same length, so their bytes are made many at a time.
    """
    size = 4 * WIDTH
    message = _example(b"\x00" * size, b"\x00" * 4)
    x_at, y_at = message.index(b"\x00" * size), len(message) - 4
    length = struct.pack("<Q", len(message))
    head = length + _checksum(length)
    with (folder / "data.tfrecord").open("wb") as file:
        for x, y in in_chunks(num_rows, 20_000):
            data = np.tile(np.frombuffer(message, np.uint8), (len(y), 1))
            data[:, x_at : x_at + size] = x.view(np.uint8)
            data[:, y_at:] = y[:, None].view(np.uint8)
            for row in data:
                record = row.tobytes()
                file.write(head + record + _checksum(record))


def _checksum(data: bytes) -> bytes:
    """The masked CRC-32C of TFRecord files."""
    import google_crc32c

    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _example(x: bytes, y: bytes) -> bytes:
    import tensorflow as tf

    def feature(data: bytes) -> Any:
        values = np.frombuffer(data, "float32")
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))

    features = {"x": feature(x), "y": feature(y)}
    example = tf.train.Example(features=tf.train.Features(feature=features))
    data: bytes = example.SerializeToString(deterministic=True)
    return data


def write_mds(folder: Path, num_rows: int) -> None:
    """Writes `mds` for MosaicML Streaming."""
    from stream_peers import import_streaming

    columns = {"x": f"ndarray:float32:{WIDTH}", "y": "float32"}
    with import_streaming().MDSWriter(out=str(folder / "mds"), columns=columns) as out:
        for features, labels in in_chunks(min(num_rows, FEW_ROWS)):
            for x, y in zip(features, labels, strict=True):
                out.write({"x": x, "y": y})


def write_hdf5(folder: Path, num_rows: int) -> None:
    """Writes `data.h5` in chunks, as h5py chooses them."""
    import h5py

    with h5py.File(folder / "data.h5", "w") as file:
        x = file.create_dataset("x", (num_rows, WIDTH), "float32", chunks=True)
        y = file.create_dataset("y", (num_rows,), "float32", chunks=True)
        for number, (features, labels) in enumerate(in_chunks(num_rows)):
            at = number * _CHUNK
            x[at : at + len(labels)], y[at : at + len(labels)] = features, labels


def write_zarr(folder: Path, num_rows: int) -> None:
    """Writes `data.zarr` with Zarr's own compression."""
    import zarr

    x, y = make_rows(0, num_rows)
    group = zarr.create_group(folder / "data.zarr")
    group.create_array("x", data=x, chunks=(4096, WIDTH))
    group.create_array("y", data=y, chunks=(4096,))


def write_csv(folder: Path, num_rows: int) -> None:
    """Writes `data.csv`."""
    import pyarrow as pa
    from pyarrow import csv

    x, y = make_rows(0, num_rows)
    columns = {f"x{at}": x[:, at] for at in range(WIDTH)}
    csv.write_csv(pa.table({**columns, "y": y}), folder / "data.csv")


def write_sqlite(folder: Path, num_rows: int) -> None:
    """Writes `data.db` with a column for each feature."""
    names = [*(f"x{at}" for at in range(WIDTH)), "y"]
    with contextlib.closing(sqlite3.connect(folder / "data.db")) as connection:
        connection.execute(f"CREATE TABLE samples ({', '.join(names)})")
        for x, y in in_chunks(num_rows):
            rows = np.column_stack([x, y]).tolist()
            connection.executemany(f"INSERT INTO samples VALUES (?{', ?' * WIDTH})", rows)
        connection.commit()


def write_pictures(folder: Path, num_pictures: int) -> None:
    """Writes JPEGs of 64 x 64 into `pictures`, in a folder for each class."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for number in range(CLASSES):
        (folder / "pictures" / f"class-{number}").mkdir(parents=True)
    for number in range(num_pictures):
        # Smooth shapes with some noise, about as large a file as a photo of that size is.
        coarse = Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8))
        smooth = np.asarray(coarse.resize((PIXELS, PIXELS), Image.Resampling.BICUBIC), np.int16)
        noise = rng.integers(-8, 9, smooth.shape, dtype=np.int16)
        pixels = np.clip(smooth + noise, 0, 255).astype(np.uint8)
        path = folder / "pictures" / f"class-{number % CLASSES}" / f"{number:06}.jpg"
        Image.fromarray(pixels).save(path, quality=90)


def write_tar(folder: Path, num_pictures: int) -> None:
    """Packs `pictures` into a shard, as WebDataset does."""
    with tarfile.open(folder / "data.tar", "w") as archive:
        for path in sorted((folder / "pictures").glob("*/*.jpg")):
            archive.add(path, f"{path.stem}.jpg")
            label = path.parent.name.removeprefix("class-").encode()
            member = tarfile.TarInfo(f"{path.stem}.cls")
            member.size = len(label)
            archive.addfile(member, io.BytesIO(label))


WRITERS: dict[str, Callable[[Path, int], None]] = {
    "npy": write_npy,
    "store": write_store,
    "parquet": write_parquet,
    "arrow": write_arrow,
    "hf": write_hugging_face,
    "tfrecord": write_tfrecord,
    "mds": write_mds,
    "hdf5": write_hdf5,
    "zarr": write_zarr,
    "csv": write_csv,
    "sqlite": write_sqlite,
    "pictures": write_pictures,
    "tar": write_tar,
}
