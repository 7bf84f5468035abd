"""`memfit ingest` and `memfit data` as a user runs them."""

import json
import re
import signal
import subprocess
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from memfit.streaming.data.reading import ReadOptions
from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.settings import LoaderSettings
from memfit.streaming.open_data import open_data

NUM_ROWS = 20_000


@pytest.fixture
def folder(memfit):
    """Rows of 10 numbers, sorted by their labels."""
    labels = np.arange(NUM_ROWS, dtype="float32")
    np.save(memfit.cwd / "x.npy", np.repeat(labels[:, None], 10, axis=1))
    np.save(memfit.cwd / "y.npy", labels)
    np.save(memfit.cwd / "w.npy", np.ones(NUM_ROWS, "float32"))
    return memfit.cwd


def fits_the_terminal(text):
    return all(len(line) <= 80 for line in text.splitlines())


def test_ingest_writes_a_folder_and_says_what_is_in_it(memfit, folder):
    done = memfit("ingest", "x.npy", "--labels", "y.npy", "cache", "--seed", "3")

    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(
        r"cache: 20,000 rows, 880 kB, shuffled with seed 3, in [\d.]+ m?s\n", done.stdout
    )
    assert sorted(one.name for one in folder.iterdir()) == ["cache", "w.npy", "x.npy", "y.npy"]


def test_several_files_are_ingested_one_after_another(memfit, folder):
    memfit("ingest", "y.npy", "w.npy", "y.npy", "cache")

    info = json.loads(memfit("data", "info", "cache", "--json").stdout)

    assert info["num_rows"] == 3 * NUM_ROWS


def test_columns_of_a_table_are_chosen_and_put_side_by_side(memfit):
    columns = {
        name: np.arange(500.0) + at for at, name in enumerate(("age", "fare", "zip", "price"))
    }
    pq.write_table(pa.table(columns), memfit.cwd / "rides.parquet")
    how = ("--label", "price", "--columns", "age,fare", "--features", "matrix")

    info = json.loads(memfit("data", "info", "rides.parquet", *how, "--json").stdout)
    done = memfit("ingest", "rides.parquet", "cache", *how)
    checked = memfit("data", "check", "cache", "--label", "price")

    assert (done.returncode, checked.returncode) == (0, 0)
    assert info["parts"] == ["x", "price"]
    opened = open_data(memfit.cwd / "cache", ReadOptions(label="price"))
    ((x, y),) = Loader(*opened, LoaderSettings(500, 8_000_000)).run()
    assert x.shape == (500, 2)
    assert np.array_equal(x[:, 0], y - 3)


def test_pictures_keep_their_classes_through_ingest(memfit):
    for name in ("cat", "dog"):
        (memfit.cwd / "photos" / name).mkdir(parents=True)
        Image.new("RGB", (20, 10)).save(memfit.cwd / "photos" / name / "a.png")

    cache = {"XDG_CACHE_HOME": str(memfit.cwd)}
    done = memfit("ingest", "photos", "cache", "--image-size", "4x6", env=cache)

    assert (done.returncode, done.stderr) == (0, "")
    source, _ = open_data(memfit.cwd / "cache")
    assert [one.shape for one in source.schema] == [(4, 6, 3), ()]
    assert source.schema[1].categories == ("cat", "dog")


def test_a_folder_that_is_there_is_wrong_use(memfit, folder):
    (folder / "cache").mkdir()

    done = memfit("ingest", "x.npy", "cache")

    assert done.returncode == 2
    assert done.stderr == (
        "memfit: cache already exists. Give another folder, or remove it to ingest again.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["ingest", "z.npy", "cache"], "There is no file z.npy."),
        (["ingest", "x.npy", "cache", "--budget", "much"], "Cannot read a memory size."),
        (["ingest", "x.npy", "cache", "--seed", "-1"], "`seed` must be a whole number, 0 or more."),
        (["data", "info", "x.npy", "--weights", "w.npy"], "Weights need labels."),
        (["data", "info", "x.npy", "--image-size", "64"], "Cannot read the size of pictures."),
        (["ingest", "x.npy", "cache", "--columns", "a"], "There is no column 'a' in this data."),
        (["data", "info", "x.npy", "--batch-size", "0"], "`batch_size` must be a whole number, 1"),
        (["data", "bench", "x.npy", "--budget", "1MB"], "The budget is too small for this data."),
        (["data", "check", "notes.txt"], "Cannot tell the format of notes.txt."),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_left(memfit, folder, arguments, told):
    done = memfit(*arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"memfit: {told}")
    assert sorted(one.name for one in folder.iterdir()) == ["w.npy", "x.npy", "y.npy"]


SLOW = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
from memfit.streaming.ingest import ingest as module
write_partition = module.write_partition
def slow(*args):
    print("begun", flush=True)
    time.sleep(60)
module.write_partition = slow
from memfit.cli import main
sys.exit(main(["ingest", "x.npy", "cache"]))
"""


def test_an_interrupted_ingest_can_be_gone_on_with(memfit, folder):
    with subprocess.Popen(
        [memfit.command[0], "-c", SLOW],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        told = process.stderr.read()

    assert process.returncode == 130
    assert told == (
        "memfit: stopped. Run the same command again to continue; to give up, remove "
        f"{folder}/.cache.unfinished.\n"
    )
    assert memfit("ingest", "x.npy", "cache").returncode == 0
    assert sorted(one.name for one in folder.iterdir()) == ["cache", "w.npy", "x.npy", "y.npy"]


def test_info_says_what_is_in_it_and_what_budgets_make_of_it(memfit, folder):
    done = memfit("data", "info", "x.npy", "--labels", "y.npy", "--weights", "w.npy")

    assert done.returncode == 0
    assert [line.rstrip() for line in done.stdout.splitlines() if "fingerprint" not in line] == [
        "20,000 rows, 960 kB in memory",
        "not shuffled; rows can be read one by one",
        "column  type          a row",
        "x       float32 x 10   40 B",
        "y       float32         4 B",
        "weight  float32         4 B",
        "inputs: x",
        "targets: y",
        "weights: weight",
        "smallest budget, shuffled, batches of 256: 3.15 MB",
        "budget   deff  rows mixed",
        "16.0 MB  1.00      20,000",
    ]
    assert fits_the_terminal(done.stdout)


def test_info_as_json_has_the_same(memfit, folder):
    info = json.loads(memfit("data", "info", "x.npy", "--json").stdout)

    assert (info["num_rows"], info["size_bytes"]) == (NUM_ROWS, 800_000)
    assert info["columns"] == [
        {
            "name": "values",
            "dtype": "float32",
            "shape": [10],
            "mean_length": None,
            "row_bytes": 40.0,
        }
    ]
    assert info["is_shuffled"] is False


def test_intact_data_is_called_intact(memfit, folder):
    memfit("ingest", "x.npy", "cache")

    files, store = memfit("data", "check", "x.npy"), memfit("data", "check", "cache")

    assert (files.returncode, files.stdout) == (0, "intact: 20,000 rows; every row was read\n")
    assert (store.returncode, store.stdout) == (0, "intact: 20,000 rows; 1 checksums are right\n")


def test_what_is_not_a_number_is_reported_and_is_no_fault(memfit, folder):
    np.save(folder / "x.npy", np.array([1.0, np.nan, np.nan]))

    done = memfit("data", "check", "x.npy")

    assert done.returncode == 0
    assert done.stdout == "values: 2 values are NaN\nintact: 3 rows; every row was read\n"


def test_a_damaged_store_is_found(memfit, folder):
    memfit("ingest", "x.npy", "cache")
    path = next((folder / "cache").glob("*.npy"))
    data = bytearray(path.read_bytes())
    data[5000] ^= 1
    path.write_bytes(data)

    done = memfit("data", "check", "cache")

    assert done.returncode == 1
    assert done.stdout.startswith(f"wrong: cache/{path.name} is damaged between bytes 128 and ")


def test_a_file_that_was_cut_is_found(memfit, folder):
    (folder / "x.npy").write_bytes((folder / "x.npy").read_bytes()[:5000])

    done = memfit("data", "check", "x.npy", "--json")

    assert done.returncode == 1
    (problem,) = json.loads(done.stdout)["problems"]
    assert "x.npy" in problem


def test_bench_prints_a_small_table(memfit, folder):
    done = memfit("data", "bench", "x.npy", "--labels", "y.npy", "--batch-size", "64")

    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert lines[0].split() == ["pass", "krow/s", "MB/s", "CPU", "s/Mrow", "peak", "MB"]
    assert [line.split()[0] for line in lines[1:3]] == ["first", "second"]
    assert re.fullmatch(
        r"deff 1\.00 expected on sorted data; [\d.]+ measured on these labels", lines[3]
    )
    assert re.fullmatch(r"resume: \d+ ms to the next batch", lines[4])
    assert re.fullmatch(r"whole epochs, shuffled, batches of 64, budget 256 MB; load .*", lines[5])
    assert fits_the_terminal(done.stdout)


def test_bench_as_json_measures_how_well_labels_are_mixed(memfit, folder):
    """Sorted labels in the smallest windows are mixed badly, and as badly as was expected."""
    arguments = ("data", "bench", "x.npy", "--labels", "y.npy", "--batch-size", "64", "--json")

    timing = json.loads(memfit(*arguments, "--budget", "3.1MB").stdout)

    assert timing["is_whole"]
    assert timing["first"]["num_rows"] == NUM_ROWS
    assert timing["deff"] > 5
    assert 0.5 < timing["label_deff"] / timing["deff"] < 2
    assert timing["second"]["peak_bytes"] < 3_100_000


@pytest.mark.parametrize("action", ["info", "check", "bench"])
def test_no_framework_is_loaded(memfit, folder, action):
    code = (
        f"import sys; from memfit.cli import main; main(['data', '{action}', 'x.npy']);"
        "print(sorted({'keras', 'tensorflow', 'jax', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [memfit.command[0], "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )

    assert done.stdout.endswith("[]\n")
