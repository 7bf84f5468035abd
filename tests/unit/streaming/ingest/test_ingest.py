"""The one-off shuffle on disk: uniform, whole or not there at all, checked."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from streaming.cases import Grouped

from conftest import SCRIPTS
from memfit.errors import BudgetError, DataError, UsageError
from memfit.streaming.data.layout import lay_out
from memfit.streaming.data.ragged import Ragged
from memfit.streaming.data.source import Column
from memfit.streaming.ingest.ingest import ingest
from memfit.streaming.ingest.partition import plan_partition
from memfit.streaming.ingest.passes import write_partition
from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.settings import LoaderSettings
from memfit.streaming.open_data import open_data
from memfit.streaming.store.format import Store, verify
from scripts.killed_ingest import generate

MB = 1_000_000
KILLED = SCRIPTS / "killed_ingest.py"


class Sentences:
    """Sequences of 0 to 9 steps: row `i` is `i` as often as it is long."""

    groups = None
    is_shuffled = False
    scratch_bytes = 0
    num_rows = 500

    def __init__(self):
        self.schema = (Column("x", np.dtype("int32"), (), 4.5), Column("y", np.dtype("int64")))

    def fingerprint(self):
        return "sentences"

    def check(self):
        pass

    def read(self, start, stop):
        rows = np.arange(start, stop)
        lengths = rows % 10
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        return {"x": Ragged(np.repeat(rows, lengths).astype("int32"), offsets), "y": rows}


def order_of(folder):
    return Store(folder).read(0, Store(folder).num_rows)["values"].tolist()


def ingest_numbers(number, folder, **options):
    return ingest(np.arange(number), folder, **options)


def test_every_order_is_as_likely(tmp_path):
    """Where the rows go, over 300 seeds and 5 regions."""
    source, _ = open_data(np.arange(20))
    counts = np.zeros((20, 20))
    for seed in range(300):
        folder = tmp_path / str(seed)
        folder.mkdir()
        scattering = plan_partition(source, budget_bytes=320, seed=seed)
        assert scattering.num_regions == 5
        write_partition(scattering, folder).write(folder)
        counts[order_of(folder), np.arange(20)] += 1

    chi_square = ((counts - 15) ** 2 / 15).sum()

    assert abs(chi_square - 19 * 19) < 5 * np.sqrt(2 * 19 * 19)


def test_the_same_seed_gives_the_same_order(tmp_path):
    one, same = (order_of(ingest_numbers(1000, tmp_path / name, seed=3)) for name in "ab")
    other = order_of(ingest_numbers(1000, tmp_path / "c", seed=4))

    assert one == same
    assert one != other
    assert sorted(one) == sorted(other) == list(range(1000))


def test_what_was_ingested_is_laid_out_as_before(tmp_path):
    left, right, y = np.arange(9), np.arange(9) + 10, np.arange(9) + 20
    ingest(({"left": left, "right": right}, y, np.ones(9)), tmp_path / "cache")

    ((inputs, labels, weights),) = Loader(
        *open_data(tmp_path / "cache"), LoaderSettings(9, 4 * MB)
    ).run()

    assert inputs["left"].tolist() == (labels - 20).tolist()
    assert inputs["right"].tolist() == (labels - 10).tolist()
    assert weights.tolist() == [1.0] * 9


def test_sequences_stay_whole(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir()
    write_partition(plan_partition(Sentences(), budget_bytes=20_000, seed=1), folder).write(folder)
    verify(folder)
    source = Store(folder)
    assert source.schema[0].mean_length == 4.5

    loader = Loader(source, lay_out(source.schema), LoaderSettings(32, 4 * MB, seed=2))
    seen = []
    for x, y in loader.run():
        assert x.shape == (len(y), (y % 10).max())
        for row, label in zip(x, y, strict=True):
            assert row.tolist() == [label] * (label % 10) + [0] * (len(row) - label % 10)
        seen.extend(y.tolist())

    assert sorted(seen) == list(range(500))
    assert source.read(0, 500)["y"].tolist() != list(range(500))


def test_groups_are_read_whole(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir()

    write_partition(plan_partition(Grouped(), budget_bytes=50_000, seed=1), folder).write(folder)

    assert sorted(Store(folder).read(0, 1003)["y"]) == list(range(1003))
    with pytest.raises(BudgetError, match="largest row group has 17 rows"):
        plan_partition(Grouped(), budget_bytes=5000, seed=1)


def test_a_damaged_file_is_found(tmp_path):
    folder = ingest_numbers(1000, tmp_path / "cache")
    verify(folder)
    path = next(folder.glob("*.npy"))
    data = bytearray(path.read_bytes())
    data[500] ^= 1
    path.write_bytes(data)

    with pytest.raises(DataError, match=r"values\.npy is damaged between bytes 128 and 8128"):
        verify(folder)


def test_a_file_of_another_size_is_refused(tmp_path):
    folder = ingest_numbers(1000, tmp_path / "cache")
    np.save(next(folder.glob("*.npy")), np.arange(900))

    with pytest.raises(DataError, match=r"expected 1000 rows of int64.*found 900"):
        Store(folder)


def test_a_later_format_is_refused(tmp_path):
    folder = ingest_numbers(10, tmp_path / "cache")
    path = folder / "memfit.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 2}))

    with pytest.raises(DataError, match="has format 2; this memfit reads format 1"):
        open_data(folder)


def test_a_folder_that_is_there_is_not_touched(tmp_path):
    (tmp_path / "cache").mkdir()

    with pytest.raises(UsageError, match="already exists"):
        ingest_numbers(10, tmp_path / "cache")

    assert list((tmp_path / "cache").iterdir()) == []


def test_nothing_is_left_behind_when_reading_fails(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((1000, 100)))
    source, _ = open_data(path)
    os.truncate(path, 5000)

    with pytest.raises(DataError):
        ingest(path, tmp_path / "cache")

    assert source.num_rows == 1000
    assert [one.name for one in tmp_path.iterdir()] == ["x.npy"]


def test_a_disk_that_is_too_small_is_named_before_anything_is_written(tmp_path):
    huge = np.lib.stride_tricks.as_strided(np.zeros(1), (10**14, 1), (0, 0))

    with pytest.raises(DataError, match="The disk is too small: the rows need 816 TB"):
        ingest(huge, tmp_path / "cache", budget="100GB")

    assert list(tmp_path.iterdir()) == []


def kill(source, folder, *writes, tries=1):
    """Runs processes that are killed in the middle of these writes; returns what they told."""
    done = subprocess.run(
        [sys.executable, KILLED, source, folder, str(tries), *map(str, writes)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def contents(folder):
    return {one.name: one.read_bytes() for one in folder.iterdir()}


@pytest.mark.parametrize(
    ("source", "big"),
    [("data.npz", [200] * 8 + [140]), ("500", [200, 200, 106])],
    ids=["arrays", "sequences"],
)
def test_killed_at_any_moment_the_next_try_goes_on_and_ends_the_same(
    source, big, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    np.savez("data.npz", x=np.arange(10_000.0).reshape(1000, 10), y=np.arange(1000))
    value = source if source.endswith("npz") else lambda: generate(int(source))
    whole = ingest(value, tmp_path / "whole", budget="10kB", seed=3)

    told = kill(source, "cache", 1, 9, *big, 4, tries=50)

    done = [int(one) for one in re.findall(r"resuming an interrupted ingest, (\d+)% done", told)]
    assert done == sorted(done)
    assert len([one for one in done if one < 50]) > 1
    assert len([one for one in done if one > 50]) > 5
    assert "starting again" not in told
    assert contents(tmp_path / "cache") == contents(whole)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["cache", "data.npz", "whole"]


@pytest.mark.parametrize("writes", [600, 1465], ids=["first pass", "second pass"])
def test_what_was_damaged_after_a_kill_starts_again(writes, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    np.savez("data.npz", x=np.arange(10_000.0).reshape(1000, 10), y=np.arange(1000))
    kill("data.npz", "cache", writes)
    path = tmp_path / ".cache.unfinished" / "000-x.npy"
    data = np.frombuffer(path.read_bytes(), np.uint8).copy()
    data[np.flatnonzero(data)[-1]] ^= 1
    path.write_bytes(data)

    ingest("data.npz", "cache", budget="10kB", seed=3)

    assert "unfinished is damaged: removed it, starting again" in capfd.readouterr().err
    verify(tmp_path / "cache")
    assert sorted(Store(tmp_path / "cache").read(0, 1000)["y"]) == list(range(1000))


@pytest.mark.parametrize("change", ["seed", "budget", "data"])
def test_what_does_not_belong_to_this_call_starts_again(change, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    np.savez("data.npz", x=np.arange(10_000.0).reshape(1000, 10), y=np.arange(1000))
    kill("data.npz", "cache", 600)
    if change == "data":
        np.savez("data.npz", x=np.zeros((1000, 10)), y=np.arange(1000))
    how = {
        "budget": "10kB",
        "seed": 3,
        **{"seed": {"seed": 4}, "budget": {"budget": "20kB"}}.get(change, {}),
    }

    ingest("data.npz", "cache", **how)

    assert "belongs to other data, or another seed, budget" in capfd.readouterr().err
    assert contents(tmp_path / "cache") == contents(ingest("data.npz", "whole", **how))


WRITING = """
import sys, time, numpy as np
from memfit.streaming.ingest import ingest as module
def wait(*args):
    print("begun", flush=True)
    time.sleep(60)
module.write_partition = wait
module.ingest(np.arange(1000), sys.argv[1])
"""


def test_what_another_process_writes_is_left_to_it_until_it_is_gone(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", WRITING, str(tmp_path / "cache")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "begun\n"
        with pytest.raises(UsageError, match=f"Process {process.pid} is writing"):
            ingest_numbers(1000, tmp_path / "cache")
        process.kill()
        process.wait()
    assert [one.name for one in tmp_path.iterdir()] == [".cache.unfinished"]

    ingest_numbers(1000, tmp_path / "cache")

    assert [one.name for one in tmp_path.iterdir()] == ["cache"]
    verify(tmp_path / "cache")
