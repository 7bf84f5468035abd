"""CSV as people write it: types, missing values, and lines that are wrong."""

import gzip
import subprocess
import sys

import numpy as np
import pytest

from memfit.errors import DataError
from memfit.streaming.sources import open_source


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def write(folder, text, name="data.csv"):
    (folder / name).write_text(text)
    return folder / name


def read(path):
    source = open_source(path)
    return source.read(0, source.num_rows)


def test_types_are_those_of_the_values(tmp_path):
    text = 'n,f,b,t,empty\n1,1.5,true,a,\n-2,,false,"long, and\nover two lines",\n'

    found = read(write(tmp_path, text))

    assert [one.dtype.kind for one in found.values()] == ["i", "f", "b", "U", "f"]
    assert found["n"].tolist() == [1, -2]
    assert np.isnan(found["f"]).tolist() == [False, True]
    assert found["t"].tolist() == ["a", "long, and\nover two lines"]
    assert np.isnan(found["empty"]).all()


def test_fractions_that_come_late_make_a_column_of_floats(tmp_path):
    text = "a,b\n" + "1,2\n" * 400_000 + "1,2.5\n"

    found = read(write(tmp_path, text))

    assert (found["a"].dtype.kind, found["b"].dtype.kind) == ("i", "f")
    assert found["b"][[0, -1]].tolist() == [2.0, 2.5]


def test_a_line_longer_than_a_block_is_read(tmp_path):
    long = "x" * (3 << 20)

    assert read(write(tmp_path, f"t\na\n{long}\n"))["t"].tolist() == ["a", long]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n\n3\n", r"data\.csv, line 4 cannot be read: Expected 2 columns, got 1: 3"),
        ("a,b\n1,2\n\n\n,4\n", r"data\.csv, line 5: column 'a' has no value.*int64.*no NaN"),
        ("a,b\n" + "1,2\n" * 400_000 + "1,two\n", r"line 400002: 'two' in column 'b' is not int64"),
        ("1,2\n3,4\n", r"has no header: it begins with '1,2'"),
        ("a,a\n3,4\n", r"several columns called 'a'"),
        ("a,b\n", r"data\.csv has no rows"),
        ("a\ncaf\xe9\n", r"'a' of .*data\.csv is not UTF-8"),
    ],
)
def test_what_cannot_be_read_is_reported_with_its_line(tmp_path, text, message):
    (tmp_path / "data.csv").write_bytes(text.encode("latin-1"))

    with pytest.raises(DataError, match=message):
        open_source(tmp_path / "data.csv")

    assert list((tmp_path / "cache").rglob("*.npy")) == []


@pytest.mark.parametrize("keep", [slice(0, -200), slice(5, None)])
def test_a_damaged_archive_is_reported(tmp_path, keep):
    rng = np.random.default_rng(0)
    text = "a\n" + "\n".join(str(one) for one in rng.random(1000))
    (tmp_path / "data.csv.gz").write_bytes(gzip.compress(text.encode())[keep])

    with pytest.raises(DataError, match=r"data\.csv\.gz.* cannot be read.*"):
        open_source(tmp_path / "data.csv.gz")


def test_a_package_that_is_missing_is_reported_with_what_to_install(tmp_path):
    path = write(tmp_path, "a\n1\n")
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from memfit.streaming.sources import open_source\n"
        f"open_source({str(path)!r})"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert 'CSV files need pyarrow: pip install "memfit[csv]"' in done.stderr
