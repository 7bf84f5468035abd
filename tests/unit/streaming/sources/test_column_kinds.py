"""Columns of Parquet, Arrow, HDF5 and Zarr: kinds, nulls, selection, and what is refused."""

import os
import subprocess
import sys

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from pyarrow import feather

from memfit.errors import DataError, MissingPackageError, UsageError
from memfit.streaming.data.reading import ReadOptions
from memfit.streaming.files import optional_packages
from memfit.streaming.ingest.ingest import ingest
from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.settings import LoaderSettings
from memfit.streaming.open_data import open_data

MB = 1_000_000


def write(folder, columns, kind="parquet", name="data", group_rows=4):
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    path = folder / f"{name}.{kind}"
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=group_rows)
    else:
        feather.write_feather(table, path, "uncompressed", chunksize=group_rows)
    return path


both = pytest.mark.parametrize("kind", ["parquet", "feather"])


@both
def test_kinds_of_columns_become_those_of_numpy(tmp_path, kind):
    path = write(
        tmp_path,
        {
            "half": np.arange(9, dtype="float16"),
            "small": np.arange(9, dtype="uint8"),
            "flag": np.arange(9) % 2 == 0,
            "day": np.arange(9).astype("datetime64[D]"),
            "when": np.arange(9).astype("datetime64[ms]"),
            "code": pa.array([b"%03d" % one for one in range(9)], pa.binary(3)),
            "with.dots": np.arange(9.0),
        },
        kind,
    )

    source, _ = open_data(path)
    rows = source.read(3, 6)

    assert {one.name: str(one.dtype) for one in source.schema} == {
        "half": "float16",
        "small": "uint8",
        "flag": "bool",
        "day": "datetime64[D]",
        "when": "datetime64[ms]",
        "code": "|S3",
        "with.dots": "float64",
    }
    assert rows["flag"].tolist() == [False, True, False]
    assert rows["code"].tolist() == [b"003", b"004", b"005"]
    assert rows["when"].astype(int).tolist() == [3, 4, 5]


@both
def test_lists_of_one_length_have_a_shape_and_others_are_padded_in_batches(tmp_path, kind):
    inner = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(108, dtype="float32")), 3)
    path = write(
        tmp_path,
        {
            "grid": pa.FixedSizeListArray.from_arrays(inner, 4),
            "words": pa.array([list(range(one % 4)) for one in range(9)], pa.list_(pa.int32())),
        },
        kind,
    )

    source, layout = open_data(path)
    batches = list(Loader(source, layout, LoaderSettings(5, 8 * MB)).run())

    assert source.schema[0].shape == (4, 3)
    assert batches[1][0]["grid"].reshape(-1).tolist() == list(range(60, 108))
    assert batches[1][0]["words"].tolist() == [[0, 0, 0], [0, 1, 0], [0, 1, 2], [0, 0, 0]]
    assert batches[0][0]["words"].dtype == np.dtype("int32")


@both
def test_categories_come_as_numbers_whatever_each_group_calls_them(tmp_path, kind):
    words = ["b", "a", "a", "b", "c", "a", "c", "c", "b"]
    path = write(tmp_path, {"word": pa.array(words).dictionary_encode()}, kind)

    source, _ = open_data(path)
    numbers = source.read(0, 9)["word"]

    assert [source.schema[0].categories[one] for one in numbers] == words


@both
def test_files_with_other_categories_are_refused(tmp_path, kind):
    for name, words in (("a", ["x", "y"]), ("b", ["y", "x"])):
        write(tmp_path, {"word": pa.array(words).dictionary_encode()}, kind, name)

    with pytest.raises(DataError, match=r"a\.\w+ has word .*x, y.*b\.\w+ has word .*y, x"):
        open_data(tmp_path)


@both
def test_nulls_are_nan_among_floats_and_refused_among_others(tmp_path, kind):
    path = write(
        tmp_path,
        {
            "price": pa.array([1.0, None, 3.0, 4.0, 5.0, None]),
            "count": pa.array([1, 2, 3, 4, None, None]),
            "lists": pa.array([[1.0, None], [], [2.0], None, [3.0], [4.0]]),
        },
        kind,
    )

    values = open_data(path, ReadOptions(columns=["price"]))[0].read(0, 6)["price"]

    assert np.isnan(values).tolist() == [False, True, False, False, False, True]
    part = "row group 1" if kind == "parquet" else "record batch 1"
    with pytest.raises(DataError, match=rf"'count' of .*data\.\w+, {part}, has 2 nulls.*int64"):
        open_data(path, ReadOptions(columns=["count"]))[0].read(0, 6)
    with pytest.raises(DataError, match=r"'lists' of .* 0, has 1 null, "):
        open_data(path, ReadOptions(columns=["lists"]))[0].read(0, 6)
    if kind == "parquet":  # known before training
        with pytest.raises(DataError, match="has 2 nulls"):
            open_data(path, ReadOptions(columns=["count"]))


@both
def test_text_and_records_are_refused_and_can_be_left_out(tmp_path, kind):
    path = write(
        tmp_path,
        {"name": ["a", "b"], "place": pa.array([{"x": 1}, {"x": 2}]), "age": [30, 40]},
        kind,
    )

    with pytest.raises(DataError, match=r"'name' of .*holds text.*category.*columns=\[\.\.\.\]"):
        open_data(path)
    with pytest.raises(DataError, match=r"'place' of .*holds struct<x: int64>"):
        open_data(path, ReadOptions(columns=["place"]))
    assert open_data(path, ReadOptions(columns=["age"]))[0].read(0, 2)["age"].tolist() == [30, 40]


def test_a_table_becomes_a_matrix_in_the_order_of_its_columns(tmp_path):
    path = write(
        tmp_path,
        {"a": np.arange(9), "b": np.arange(9.0) / 2, "y": np.arange(9) % 2, "id": ["?"] * 9},
    )

    source, layout = open_data(path, ReadOptions(label="y", columns=["b", "a"], features="matrix"))
    x, y = next(Loader(source, layout, LoaderSettings(9, 4 * MB)).run())

    assert (x.dtype, x.shape) == (np.dtype("float32"), (9, 2))
    assert x[:, 0].tolist() == (np.arange(9) / 2).tolist()
    assert x[:, 1].tolist() == list(range(9))
    assert y.tolist() == [0, 1] * 4 + [0]


def test_a_table_is_ingested_as_a_matrix_and_keeps_its_categories(tmp_path):
    words = pa.array(["a", "b", "a", "c"]).dictionary_encode()
    path = write(tmp_path, {"a": np.arange(4), "b": np.arange(4.0) * 2, "word": words})

    folder = ingest(path, tmp_path / "cache", label="word", features="matrix")
    source, layout = open_data(folder, ReadOptions(label="word"))
    x, y = layout.arrange(source.read(0, 4))

    assert source.schema[1].categories == ("a", "b", "c")
    assert x[:, 1].tolist() == (x[:, 0] * 2).tolist()
    assert [(0, 1, 0, 2)[int(row)] for row in x[:, 0]] == y.tolist()


def test_a_matrix_of_lists_is_refused(tmp_path):
    path = write(tmp_path, {"a": [1.0], "l": pa.array([[1.0]])})

    with pytest.raises(DataError, match=r"a number in every row. Column 'l' holds sequences"):
        open_data(path, ReadOptions(features="matrix"))
    with pytest.raises(UsageError, match=r'must be "columns" or "matrix". Received: \'row\''):
        open_data(path, ReadOptions(features="row"))


def test_columns_of_any_source_can_be_left_out(tmp_path):
    (tmp_path / "d.csv").write_text("a,b,c\n" + "".join(f"{at},0,{at % 2}\n" for at in range(9)))

    source, layout = open_data(tmp_path / "d.csv", ReadOptions(label="c", columns=["a"]))
    x, y = next(Loader(source, layout, LoaderSettings(4, 8 * MB, seed=1)).run())

    assert [one.name for one in source.schema] == ["a", "c"]
    assert (x % 2).tolist() == y.tolist()


def test_arrays_of_an_archive_that_are_left_out_may_be_of_any_length(tmp_path):
    train, test = np.arange(9), np.arange(5)
    np.savez(tmp_path / "d.npz", x_train=train, y_train=train % 2, x_test=test, y_test=test % 2)

    source, layout = open_data(
        tmp_path / "d.npz", ReadOptions(label="y_train", columns=["x_train"])
    )
    held_out, _ = open_data(tmp_path / "d.npz", ReadOptions(label="y_test", columns=["x_test"]))
    x, y = next(Loader(source, layout, LoaderSettings(9, 8 * MB)).run())

    assert (x.tolist(), y.tolist()) == (train.tolist(), (train % 2).tolist())
    assert held_out.num_rows == 5
    assert held_out.fingerprint() != source.fingerprint()
    with pytest.raises(DataError, match=r"differ in rows: x_train has 9.*columns=\[\.\.\.\]"):
        open_data(tmp_path / "d.npz")


@pytest.mark.parametrize("columns", ["a", [], ["a", "a"], [1]])
def test_columns_that_are_no_list_of_names_are_refused(columns):
    with pytest.raises(UsageError, match="columns must be a list of different names"):
        open_data(np.zeros(3), ReadOptions(columns=columns))


def test_columns_of_several_sources_are_refused():
    with pytest.raises(UsageError, match=r"columns is about .* one source.*Leave columns out"):
        open_data((np.zeros(3), np.zeros(3)), ReadOptions(columns=["a"]))


def write_any(folder, kind):
    columns = {"a": np.arange(5000.0), "b": np.arange(5000)}
    if kind in ("parquet", "feather"):
        return write(folder, columns, kind, group_rows=500)
    if kind == "h5":
        with h5py.File(folder / "data.h5", "w") as file:
            for name, values in columns.items():
                file.create_dataset(name, data=values, chunks=(500,), compression="gzip")
        return folder / "data.h5"
    group = zarr.create_group(folder / "data.zarr")
    for name, values in columns.items():
        group.create_array(name, data=values, chunks=(500,))
    return folder / "data.zarr"


def read_all(path):
    source, _ = open_data(path)
    return source.read(0, source.num_rows)


any_kind = pytest.mark.parametrize("kind", ["parquet", "feather", "h5", "zarr"])


@any_kind
def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path, kind):
    path = write_any(tmp_path, kind)

    with pytest.raises(DataError, match=r"no column 'c' in .*data\.\w+. Found: a, b"):
        open_data(path, ReadOptions(columns=["a", "c"]))


@pytest.mark.parametrize("kind", ["parquet", "feather", "h5"])
def test_a_cut_file_is_refused(tmp_path, kind):
    path = write_any(tmp_path, kind)
    os.truncate(path, path.stat().st_size // 2)

    with pytest.raises(DataError, match=r"data\.\w+ is not an? .*Write or copy it again"):
        read_all(path)


@pytest.mark.parametrize("kind", ["parquet", "feather", "h5"])
def test_a_file_of_another_kind_is_refused(tmp_path, kind):
    (tmp_path / f"data.{kind}").write_text("a,b\n1,2\n" * 100)

    with pytest.raises(DataError, match=r"data\.\w+ is not an? "):
        open_data(tmp_path / f"data.{kind}")


def damage(path, kind):
    """Writes nonsense where values are."""
    file, at, size = path, 20_000, 2000
    if kind == "h5":
        with h5py.File(path) as opened:
            chunk = opened["b"].id.get_chunk_info(5)
        at, size = chunk.byte_offset, chunk.size
    if kind == "zarr":
        file, at = path / "b" / "c" / "5", 0
        size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(b"\xa5" * size)


@pytest.mark.parametrize("kind", ["parquet", "h5", "zarr"])
def test_a_damaged_part_is_named(tmp_path, kind):
    path = write_any(tmp_path, kind)
    damage(path, kind)

    with pytest.raises(DataError, match=r"(row group|rows) \d+.* is damaged or truncated"):
        read_all(path)


@both
def test_files_without_rows_are_refused(tmp_path, kind):
    path = write(tmp_path, {"a": np.zeros(0)}, kind)

    with pytest.raises(DataError, match=r"data\.\w+ has no rows"):
        open_data(path)


@both
def test_files_that_differ_are_named_with_both_schemas(tmp_path, kind):
    write(tmp_path, {"a": np.zeros(3)}, kind, "first")
    write(tmp_path, {"a": np.zeros(3, "int32")}, kind, "second")

    with pytest.raises(
        DataError, match=r"first\.\w+ has a float64 \(\), .*second\.\w+ has a int32 \(\)"
    ):
        open_data(str(tmp_path / f"*.{kind}"))


def test_arrow_streams_are_distinguished_from_files(tmp_path):
    table = pa.table({"a": [1.0]})
    with pa.ipc.new_stream(tmp_path / "data.arrow", table.schema) as file:
        file.write_table(table)

    with pytest.raises(DataError, match=r"is an Arrow stream.*pyarrow\.ipc\.new_file"):
        open_data(tmp_path / "data.arrow")


def test_datasets_that_differ_in_rows_are_refused_unless_some_are_named(tmp_path):
    with h5py.File(tmp_path / "d.h5", "w", userblock_size=512) as file:
        file["train/x"], file["train/y"] = np.arange(8.0).reshape(4, 2), np.arange(4)
        file["test/x"] = np.zeros((3, 2))
        file["version"] = 3

    with pytest.raises(DataError, match=r"differ in rows: test/x has 3, train/x has 4.*columns="):
        open_data(tmp_path / "d.h5")

    source, layout = open_data(tmp_path / "d.h5", ReadOptions(label="train/y", columns=["train/x"]))
    x, y = layout.arrange(source.read(1, 3))
    assert x.tolist() == [[2, 3], [4, 5]]
    assert y.tolist() == [1, 2]


def test_text_in_hdf5_is_refused_unless_its_length_is_fixed(tmp_path):
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file["fixed"] = np.array([b"ab", b"cd"])
        file["varying"] = ["a", "bcd"]

    with pytest.raises(DataError, match=r"'varying' of .* text or lists of varying length"):
        open_data(tmp_path / "d.h5")
    source, _ = open_data(tmp_path / "d.h5", ReadOptions(columns=["fixed"]))
    assert source.read(0, 2)["fixed"].tolist() == [b"ab", b"cd"]


def test_a_single_zarr_array_is_a_source(tmp_path):
    zarr.create_array(
        tmp_path / "a.zarr", data=np.arange(30.0).reshape(10, 3), chunks=(4, 3), zarr_format=2
    )

    source, _ = open_data(tmp_path / "a.zarr")

    assert source.read(3, 5)["values"].tolist() == [[9, 10, 11], [12, 13, 14]]


def test_a_missing_package_is_named_with_what_installs_it():
    with pytest.raises(MissingPackageError, match=r'Parquet files need zz: pip install "memfit\[p'):
        optional_packages.load("zz.parquet", "Parquet files", "parquet")


def test_no_package_is_imported_before_it_is_needed():
    code = (
        "import sys, numpy; from memfit.streaming.open_data import open_data;"
        "open_data(numpy.zeros(3)); print({'pyarrow', 'h5py', 'zarr'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"


def test_groups_that_are_cut_by_a_split_are_not_decoded_again_and_again(tmp_path, monkeypatch):
    path = write(tmp_path, {"a": np.arange(3000.0)}, group_rows=1000)
    source, layout = open_data(path)
    decoded = []
    decode = source.decode
    monkeypatch.setattr(source, "decode", lambda group: decoded.append(group) or decode(group))
    train, _ = Loader(source, layout, LoaderSettings(8, 16 * MB, seed=1)).split(0.5)

    list(train.run())

    assert len(decoded) <= 3


@pytest.mark.measures
def test_the_peak_of_parquet_stays_within_the_budget(tmp_path):
    rows = np.random.default_rng(0).random((100_000, 64), "float32")
    lists = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), 64)
    write(tmp_path, {"x": lists, "y": rows[:, 0]}, name="lists", group_rows=4000)
    table = {f"c{at}": rows[:, at] for at in range(64)}
    write(tmp_path, table, name="table", group_rows=4000)
    code = """
import sys, pyarrow.parquet, numpy
from memfit.streaming.data.reading import ReadOptions
from memfit.streaming.open_data import open_data
from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.settings import LoaderSettings
from memfit.measure.peak import Peak, read_tree_bytes
options = ReadOptions(features=sys.argv[2])
few = Loader(*open_data(sys.argv[3], options), LoaderSettings(2, 4_000_000, seed=1))
list(few.run())  # the code of pyarrow itself is loaded
idle = read_tree_bytes()
with Peak() as peak:
    loader = Loader(*open_data(sys.argv[1], options), LoaderSettings(64, 56_000_000, seed=1))
    for _ in range(2):
        for _ in loader.run():
            pass
    print(peak.read() - idle)
"""
    for name, features in (("lists", "columns"), ("table", "matrix")):
        path = tmp_path / f"{name}.parquet"
        few = write(tmp_path, pq.read_table(path).slice(0, 9), name=f"few-{name}")
        done = subprocess.run(
            [sys.executable, "-c", code, path, features, few],
            capture_output=True,
            text=True,
            check=True,
        )
        assert int(done.stdout) < 56 * MB, (name, done.stdout)
