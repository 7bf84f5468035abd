"""Files in file systems that only pyarrow knows: how they are named, found, checked and refused."""

import gzip
import shutil
import uuid

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather, fs

from memfit.errors import DataChangedError, DataError, DataNotFoundError, UsageError
from memfit.streaming.data.reading import ReadOptions
from memfit.streaming.ingest.ingest import ingest
from memfit.streaming.open_data import open_data
from memfit.streaming.sources import open_source


@pytest.fixture(params=["below a folder", "of fsspec"])
def place(request, tmp_path):
    """A file system, and a function that puts a file of this machine there."""
    if request.param == "below a folder":
        shown = tmp_path / "shown"
        shown.mkdir()
        filesystem = fs.SubTreeFileSystem(str(shown), fs.LocalFileSystem())
    else:
        memory = fs.PyFileSystem(fs.FSSpecHandler(fsspec.filesystem("memory")))
        filesystem = fs.SubTreeFileSystem(f"/{uuid.uuid4()}", memory)

    def put(path, name):
        if "/" in name:
            filesystem.create_dir(name.rpartition("/")[0])
        with path.open("rb") as file, filesystem.open_output_stream(name, None) as out:
            shutil.copyfileobj(file, out)
        return filesystem

    filesystem.create_dir("rides")
    return filesystem, put


def write_parts(folder, put, number=3):
    for at in range(number):
        table = pa.table({"n": np.arange(at * 10, at * 10 + 10)})
        pq.write_table(table, folder / "part.parquet")
        put(folder / "part.parquet", f"rides/{at}.parquet")


def numbers(source):
    return source.read(0, source.num_rows)["n"].tolist()


@pytest.mark.parametrize(
    "path", ["rides/*.parquet", "rides", "rides/[0-2].parquet", "**/*.parquet", "*/?.parquet"]
)
def test_globs_and_folders_are_all_files_in_order(path, place, tmp_path):
    filesystem, put = place
    write_parts(tmp_path, put)
    (tmp_path / "notes").write_text("no data")
    put(tmp_path / "notes", "rides/_SUCCESS")

    assert numbers(open_source(path, ReadOptions(filesystem=filesystem))) == list(range(30))


def test_a_list_of_files_keeps_its_order(place, tmp_path):
    filesystem, put = place
    write_parts(tmp_path, put)
    paths = ["rides/2.parquet", "rides/0.parquet"]

    assert numbers(open_source(paths, ReadOptions(filesystem=filesystem))) == [
        *range(20, 30),
        *range(10),
    ]


def test_a_glob_does_not_look_into_folders_that_it_does_not_name(place, tmp_path):
    filesystem, put = place
    write_parts(tmp_path, put, number=1)

    with pytest.raises(DataNotFoundError, match=r"No file matches \*\.parquet"):
        open_source("*.parquet", ReadOptions(filesystem=filesystem))


def test_feather_and_csv_are_read_where_they_are(place, tmp_path):
    filesystem, put = place
    feather.write_feather(pa.table({"n": np.arange(30)}), tmp_path / "a", "lz4", chunksize=7)
    with gzip.open(tmp_path / "b", "wt") as file:
        file.write("n\n" + "\n".join(map(str, range(30))))
    put(tmp_path / "a", "a.feather")
    put(tmp_path / "b", "b.csv.gz")

    assert numbers(open_source("a.feather", ReadOptions(filesystem=filesystem))) == list(range(30))
    assert numbers(open_source("b.csv.gz", ReadOptions(filesystem=filesystem))) == list(range(30))


def test_features_and_labels_may_both_be_elsewhere(place, tmp_path):
    filesystem, put = place
    write_parts(tmp_path, put, number=2)

    source, layout = open_data(
        ("rides/0.parquet", "rides/1.parquet"), ReadOptions(filesystem=filesystem)
    )

    x, y = layout.arrange(source.read(0, 10))
    assert (y - x).tolist() == [10] * 10


def test_a_missing_file_is_reported_with_those_that_are_there(place, tmp_path):
    filesystem, put = place
    write_parts(tmp_path, put)

    with pytest.raises(
        DataNotFoundError,
        match=r"no file rides/9\.parquet.*rides holds 0\.parquet, 1\.parquet, 2\.parquet\.",
    ):
        open_source("rides/9.parquet", ReadOptions(filesystem=filesystem))


def test_a_change_is_noticed(place, tmp_path):
    filesystem, put = place
    write_parts(tmp_path, put, number=1)
    source = open_source("rides/0.parquet", ReadOptions(filesystem=filesystem))
    before = source.fingerprint()
    pq.write_table(pa.table({"n": np.arange(99)}), tmp_path / "part.parquet")
    put(tmp_path / "part.parquet", "rides/0.parquet")

    with pytest.raises(DataChangedError, match=r"rides/0\.parquet has changed"):
        source.check()
    assert (
        open_source("rides/0.parquet", ReadOptions(filesystem=filesystem)).fingerprint() != before
    )


def test_a_file_that_is_damaged_is_named(place, tmp_path):
    filesystem, put = place
    (tmp_path / "a").write_bytes(b"PAR1 but no more")
    put(tmp_path / "a", "a.parquet")

    with pytest.raises(DataError, match=r"a\.parquet is not a Parquet file that can be read"):
        open_source("a.parquet", ReadOptions(filesystem=filesystem))


def test_other_kinds_are_refused_with_what_to_do(place, tmp_path):
    filesystem, put = place
    np.save(tmp_path / "x.npy", np.zeros(3))
    put(tmp_path / "x.npy", "x.npy")

    with pytest.raises(UsageError, match=r"Cannot stream x\.npy from another machine.*Copy it"):
        open_source("x.npy", ReadOptions(filesystem=filesystem))


def test_what_is_elsewhere_is_ingested_as_what_is_here(place, tmp_path):
    filesystem, put = place
    write_parts(tmp_path, put)

    ingest("rides/*.parquet", tmp_path / "cache", filesystem=filesystem)

    assert sorted(numbers(open_source(tmp_path / "cache"))) == list(range(30))


def test_a_uri_of_a_file_here_is_its_path(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3))
    for at in range(2):
        pq.write_table(pa.table({"n": [at]}), tmp_path / f"{at}.parquet")

    assert open_source(f"file://{tmp_path}/x.npy").read(0, 3)["values"].tolist() == [0, 1, 2]
    assert numbers(open_source(f"file://{tmp_path}/*.parquet")) == [0, 1]
    with pytest.raises(DataNotFoundError, match=r"There is no file /.*/y\.npy"):
        open_source(f"file://{tmp_path}/y.npy")


def test_a_uri_that_nobody_knows_is_refused_without_its_secrets():
    with pytest.raises(UsageError, match=r"what ftp://host/a\.parquet is: Unrecog") as told:
        open_source("ftp://me:secret@host/a.parquet?key=secret")

    assert "secret" not in str(told.value)


def test_what_is_no_file_system_is_refused():
    with pytest.raises(UsageError, match=r"Received: a MemoryFileSystem.*FSSpecHandler"):
        open_source("a.parquet", ReadOptions(filesystem=fsspec.filesystem("memory")))
