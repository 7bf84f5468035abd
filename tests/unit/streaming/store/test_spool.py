"""Data read once from front to back: kept whole or not at all, used again, renewed on a change."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from memfit.errors import DataChangedError, DataError
from memfit.streaming.data.ragged import Ragged
from memfit.streaming.files.local import DataFile
from memfit.streaming.store import atomic_folder
from memfit.streaming.store.cache_folder import find_cache
from memfit.streaming.store.format import verify
from memfit.streaming.store.spool import make_key, spool


@pytest.fixture(autouse=True)
def streams(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return find_cache()


def batches(*sizes):
    at = 0
    for size in sizes:
        rows = np.arange(at, at + size)
        lengths = rows % 3
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        yield {"x": rows.astype("float32"), "s": Ragged(np.repeat(rows, lengths), offsets)}
        at += size


def never():
    raise AssertionError("read again")
    yield


def test_rows_keep_their_order_and_sequences_stay_whole(streams):
    source = spool(batches(7, 0, 1, 12), "a")

    assert source.num_rows == 20
    assert source.read(0, 20)["x"].tolist() == list(range(20))
    sequences = source.read(4, 9)["s"]
    assert sequences.values.tolist() == [4, 5, 5, 7, 8, 8]
    assert sequences.lengths.tolist() == [1, 2, 0, 1, 2]
    assert source.schema[1].mean_length == pytest.approx(19 / 20)
    verify(next(streams.iterdir()))


def test_what_is_there_is_not_read_again(streams):
    first = spool(batches(5), "a")

    again, other = spool(never(), "a"), spool(batches(6), "b")

    assert again.fingerprint() == first.fingerprint() != other.fingerprint()
    assert other.num_rows == 6
    assert len(list(streams.iterdir())) == 2


def test_the_fingerprint_is_that_of_the_rows_not_of_the_batches():
    assert spool(batches(5, 3), "a").fingerprint() == spool(batches(8), "b").fingerprint()


def test_a_damaged_cache_is_made_anew(streams):
    spool(batches(5), "a")
    os.truncate(next(streams.glob("*/*x.npy")), 130)

    assert spool(batches(5), "a").read(0, 5)["x"].tolist() == list(range(5))


def test_text_may_get_longer():
    texts = ["a", "ab", "abcde", "b", "abcdefghi", ""]

    source = spool(({"t": np.array([text, "é"])} for text in texts), "a")

    assert source.schema[0].dtype == np.dtype("U12")
    assert source.read(0, 12)["t"][::2].tolist() == texts
    assert set(source.read(0, 12)["t"][1::2]) == {"é"}


def test_text_kept_as_objects_becomes_text():
    source = spool(iter([{"t": np.array(["a", "bc"], object)}]), "a")

    assert source.read(0, 2)["t"].tolist() == ["a", "bc"]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"x": np.zeros((2, 4), "f8")}, r"'x' of batch 2 of data is float64 \(4,\); in the first"),
        ({"x": np.zeros((2, 3), "f4")}, r"'x' of batch 2 of data is float32 \(3,\)"),
        ({"y": np.zeros((2, 4), "f4")}, "batch 2 of data differ: expected x; found y"),
        ({"x": Ragged(np.zeros((2, 4), "f4"), np.array([0, 2]))}, "is float32 sequences of"),
        ({"x": np.array([{}], object)}, r"'x' holds Python objects \(dict\)"),
    ],
)
def test_a_batch_that_differs_is_refused_by_its_number(streams, second, message):
    with pytest.raises(DataError, match=message):
        spool(iter([{"x": np.zeros((2, 4), "f4")}, second]), "a")

    assert list(streams.iterdir()) == []


def test_columns_of_different_length_are_refused():
    with pytest.raises(DataError, match="different numbers of rows: x has 3, y has 2"):
        spool(iter([{"x": np.zeros(3), "y": np.zeros(2)}]), "a")


def test_no_rows_are_refused(streams):
    with pytest.raises(DataError, match="data has no rows"):
        spool(iter([]), "a")

    assert list(streams.iterdir()) == []


def test_an_error_of_the_data_leaves_nothing_behind(streams):
    def broken():
        yield from batches(5)
        raise RuntimeError("connection lost")

    with pytest.raises(RuntimeError, match="connection lost"):
        spool(broken(), "a")

    assert list(streams.iterdir()) == []


def test_a_full_disk_is_reported_and_leaves_nothing_behind(streams, monkeypatch):
    usage = atomic_folder.shutil.disk_usage(streams.parent.parent.parent)
    free = itertools.count(250, -100)
    monkeypatch.setattr(
        atomic_folder.shutil, "disk_usage", lambda _: usage._replace(free=max(next(free), 0))
    )

    with pytest.raises(DataError, match=r"cache is too small.* Set XDG_CACHE_HOME to"):
        spool(batches(5, 5, 5), "a")

    assert list(streams.iterdir()) == []


def test_too_many_rows_for_the_disk_are_refused_at_the_first(streams):
    with pytest.raises(DataError, match=r"data: \d+ TB are needed"):
        spool(itertools.chain(batches(5), never()), "a", total=10**14)

    assert list(streams.iterdir()) == []


def test_data_that_changes_while_it_is_read_is_not_kept(tmp_path, streams):
    path = tmp_path / "data"
    path.write_text("1")
    file = DataFile(path)

    def changing():
        yield from batches(5)
        path.write_text("23")

    with pytest.raises(DataChangedError):
        spool(changing(), make_key([file]), check=file.check)

    assert list(streams.iterdir()) == []


def test_a_file_written_again_has_another_key(tmp_path):
    path = tmp_path / "data"
    path.write_text("1")
    key = make_key([DataFile(path)], "csv")
    same, other = make_key([DataFile(path)], "csv"), make_key([DataFile(path)], "tsv")
    os.utime(path, ns=(1, 1))

    assert key == same != other
    assert make_key([DataFile(path)], "csv") != key


SLOW = """
import sys, time, numpy as np
from memfit.streaming.store.spool import spool
def batches():
    yield {"x": np.arange(5)}
    print("begun", flush=True)
    sys.stdin.readline()
    yield {"x": np.arange(5, 9)}
spool(batches(), "a")
"""


def test_another_process_that_writes_the_same_is_waited_for():
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4] / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout.readline() == "begun\n"
        process.stdin.write("\n")
        process.stdin.flush()

        source = spool(never(), "a")

    assert source.read(0, 9)["x"].tolist() == list(range(9))
