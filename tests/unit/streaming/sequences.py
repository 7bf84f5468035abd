"""Sources of sequences that differ in length: to add one to the suite, add a line to SEQUENCES.

Row `i` has the label `i`, and is a sequence of `i + 1`, as often as `lengths_of` says.
"""

import gzip
from functools import partial

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from streaming.cases import Case
from streaming.tf_examples import frame, make_example

from memfit.streaming.ingest.ingest import ingest

NUM_ROWS = 801
LONGEST = 60


def lengths_of(labels):
    """How long rows are: from nothing to `LONGEST`, most of them short."""
    return (np.asarray(labels) * 7919 % 1009 / 1009) ** 3 * (LONGEST + 0.99) // 1


def make_rows():
    for label, length in enumerate(lengths_of(range(NUM_ROWS)).astype(int)):
        yield np.full(length, label + 1, "int64"), np.int64(label)


def make_table():
    x, y = zip(*make_rows(), strict=True)
    return pa.table({"x": pa.array(x, pa.list_(pa.int64())), "y": pa.array(y)})


def write_parquet(folder):
    pq.write_table(make_table(), folder / "data.parquet", row_group_size=100)
    return folder / "data.parquet"


def write_arrow_files(folder):
    for at in range(3):
        table = make_table().slice(at * 300, 300)
        with pa.ipc.new_file(folder / f"part-{at}.arrow", table.schema) as file:
            file.write_table(table, max_chunksize=100)
    return folder


def write_tfrecord(folder, name="data.tfrecord", opener=open):
    with opener(folder / name, "wb") as file:
        for x, y in make_rows():
            file.write(frame(make_example(x=x, y=[y])))
    return folder / name


def write_store(folder):
    return ingest(write_parquet(folder), folder / "cache", budget="1MB")


SEQUENCES = {
    "parquet": Case(write_parquet),
    "arrow files": Case(write_arrow_files),
    "tfrecord": Case(write_tfrecord),
    "tfrecord.gz": Case(partial(write_tfrecord, name="data.tfrecord.gz", opener=gzip.open)),
    "store": Case(write_store, keeps_order=False),
    "datasets": Case(lambda _: datasets.Dataset(make_table())),
    "generators": Case(lambda _: make_rows),
}
