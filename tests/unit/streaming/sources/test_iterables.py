"""What can only be iterated is read once, kept while it is used, and checked row by row."""

import gc
import itertools
import os
import signal
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from memfit.errors import DataError, UsageError
from memfit.streaming.data.ragged import Ragged
from memfit.streaming.ingest.ingest import ingest
from memfit.streaming.open_data import open_data
from memfit.streaming.sources.iterables import batches
from memfit.streaming.store import spool_once
from memfit.streaming.store.cache_folder import find_cache


@pytest.fixture(autouse=True)
def streams(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return find_cache()


def rows_from(*values):
    def make():
        yield from values

    return make


def read_all(value):
    source, _ = open_data(value)
    return source.read(0, source.num_rows)


def test_a_generator_function_is_run_once():
    runs = []

    def make_rows():
        runs.append(1)
        yield from ((np.float32([i, i]), i) for i in range(10_000))

    source, layout = open_data(make_rows)

    assert layout.parts == ("x", "y")
    assert source.read(9_998, 10_000)["x"].tolist() == [[9_998, 9_998], [9_999, 9_999]]
    assert source.num_rows == 10_000
    assert runs == [1]


def test_objects_that_can_be_iterated_are_read_from_their_beginning():
    class Own:
        def __iter__(self):
            return iter([{"a": 1, "b": 0.5}, {"a": 2, "b": 1.5}])

    found = read_all(Own())

    assert found["a"].tolist() == [1, 2]
    assert found["b"].tolist() == [0.5, 1.5]


def test_sequences_and_texts_may_differ_in_length():
    found = read_all(rows_from(([1, 2], "a"), ([3], "bcd"), ([], "")))

    assert isinstance(found["x"], Ragged)
    assert found["x"].pad().tolist() == [[1, 2], [3, 0], [0, 0]]
    assert found["y"].tolist() == ["a", "bcd", ""]


def test_batches_are_cut_anew():
    found = read_all(batches(rows_from((np.arange(3), np.ones(3)), [np.arange(3, 5), np.zeros(2)])))

    assert found["x"].tolist() == [0, 1, 2, 3, 4]
    assert found["y"].tolist() == [1, 1, 1, 0, 0]


def test_a_pydataset_is_read_by_its_batches():
    class PyDataset:
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return np.full(2, index), np.full(2, -index)

    assert read_all(batches(PyDataset()))["x"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_it_is_on_disk_as_long_as_it_is_used(streams):
    source, _ = open_data(rows_from(1, 2, 3))
    other, _ = open_data(rows_from(1, 2, 3))
    assert len(list(streams.iterdir())) == 2
    assert source.fingerprint() == other.fingerprint()

    del source
    gc.collect()

    assert len(list(streams.iterdir())) == 1
    assert other.read(0, 3)["values"].tolist() == [1, 2, 3]


def test_ingest_keeps_it_for_good(tmp_path):
    folder = ingest(rows_from(*range(100)), tmp_path / "kept")

    assert sorted(read_all(folder)["values"]) == list(range(100))


KILLED = """
import sys
from memfit.streaming.open_data import open_data
def make_rows():
    yield from range(10_000)
    if "while reading" in sys.argv:
        print("ready", flush=True)
        sys.stdin.readline()
source, _ = open_data(make_rows)
print("ready", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("when", ["while reading", "later"])
def test_what_a_killed_process_left_behind_is_removed(streams, when):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, when],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4] / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout.readline() == "ready\n"
        (theirs,) = streams.iterdir()
        first, _ = open_data(rows_from(1))
        assert theirs.exists()
        process.send_signal(signal.SIGKILL)

    second, _ = open_data(rows_from(1))

    assert not theirs.exists()
    assert len(list(streams.iterdir())) == first.num_rows + second.num_rows == 2


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([1, 2, 0.5], r"Row 2 of make\(\) differs .*'values': it has float64 .* have int64"),
        ([np.zeros((3, 2)), np.zeros((3, 4))], r"Row 1 .*\(3, 4\), they have .*\(3, 2\)"),
        ([1, "a"], "it has text, they have int64"),
        ([{"a": 1}, {"b": 1}], "Row 1 .* has the columns b; the rows before it have a"),
        ([(1, None)], r"Row 0 of make\(\) has a NoneType in 'y'"),
        ([b"\xff\xfe"], "has bytes in 'values' that are not text"),
        ([], r"make\(\) has no rows"),
    ],
)
def test_a_row_that_differs_is_named_and_nothing_is_left(rows, says, streams):
    with pytest.raises(DataError, match=says):
        open_data(rows_from(*rows))

    assert list(streams.iterdir()) == []


def test_sequences_that_begin_late_are_refused_by_their_row():
    rows = itertools.chain(itertools.repeat(np.zeros(2), 5000), [np.zeros(3)])

    with pytest.raises(DataError, match=r"Row 5000 of <lambda>\(\) differs"):
        open_data(lambda: rows)


def test_a_batch_without_rows_is_refused():
    with pytest.raises(DataError, match=r"Batch 1 of make\(\) has a single int in 'values'"):
        open_data(batches(rows_from(1)))


def test_an_error_of_the_generator_passes_with_the_row(streams):
    def broken():
        yield 1
        raise ConnectionError("lost")

    with pytest.raises(ConnectionError, match="lost") as caught:
        open_data(broken)

    assert caught.value.__notes__ == ["memfit.stream was reading row 1 of broken()."]
    assert list(streams.iterdir()) == []


def test_what_can_be_read_only_once_is_refused():
    with pytest.raises(UsageError, match="an already started generator: it can be read only once"):
        open_data(rows_from(1)())
    with pytest.raises(UsageError, match="only once"):
        batches(rows_from(1)())


def test_a_function_with_arguments_is_refused():
    def make_rows(path):
        yield path

    with pytest.raises(UsageError, match=r"make_rows\(\) must take no arguments: .*'path'.*lambda"):
        open_data(make_rows)
    with pytest.raises(UsageError, match=r"must take no arguments"):
        batches(make_rows)


def test_a_function_that_gives_nothing_to_iterate_is_refused():
    def make():
        return 3

    with pytest.raises(UsageError, match=r"make\(\) returned a int. Expected an iterator"):
        open_data(make)


def test_a_data_loader_is_refused_row_by_row():
    class DataLoader:
        def __iter__(self):
            return iter([[np.zeros(2), np.ones(2)]])

    with pytest.raises(UsageError, match=r"loader\.dataset.*memfit\.batches\(loader\)"):
        open_data(DataLoader())
    assert read_all(batches(DataLoader()))["y"].tolist() == [1, 1]


def test_a_generator_without_end_does_not_fill_the_disk(monkeypatch, streams):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(spool_once.shutil, "disk_usage", lambda _: usage(10**9, 0, 10**6))

    with pytest.raises(DataError, match=r"count\(\) has more than \d+ rows, .*itertools\.islice"):
        open_data(batches(count))

    assert list(streams.iterdir()) == []


def count():
    while True:
        yield np.zeros(10_000)
