"""The cache on disk within its bounds: what was not used for longest goes first."""

import contextlib
import gc
import os
import shutil
import subprocess
import sys
from collections import namedtuple

import numpy as np
import pytest
from PIL import Image

from memfit.errors import DataError
from memfit.streaming.data.reading import ReadOptions
from memfit.streaming.open_data import open_data
from memfit.streaming.store.cache_folder import find_cache
from memfit.streaming.store.spool import find_folder, spool

KB = 1000


@pytest.fixture(autouse=True)
def disk(tmp_path, monkeypatch):
    """Sets how large a disk with nothing but the cache is."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    usage = namedtuple("usage", "total used free")

    def be(total):
        def tell(_):
            used = sum(one.stat().st_size for one in find_cache().rglob("*.npy"))
            return usage(total, used, total - used)

        monkeypatch.setattr(shutil, "disk_usage", tell)

    return be


def fill(key, size=100 * KB):
    return spool(iter([{"x": np.zeros(size, np.uint8)}]), key)


def fill_one_after_another(*keys):
    for at, key in enumerate(keys):
        fill(key)
        os.utime(find_folder(key), (at, at))
    gc.collect()


def is_there(*keys):
    return [find_folder(key).exists() for key in keys]


def test_what_was_not_used_for_longest_makes_room(disk):
    disk(400 * KB)  # of which the cache may take 320
    fill_one_after_another("a", "b", "c")
    fill("a")
    gc.collect()

    fill("new")

    assert is_there("a", "b", "c", "new") == [True, False, True, True]
    assert [one for one in find_cache().iterdir() if one.name.startswith(".")] == []


def test_no_more_is_removed_than_has_to_be(disk):
    disk(10_000 * KB)
    fill_one_after_another("a", "b")

    fill("new")

    assert is_there("a", "b", "new") == [True, True, True]


def test_what_a_stream_here_uses_stays_until_it_is_forgotten(disk):
    disk(200 * KB)
    used = fill("a")

    with pytest.raises(DataError, match=r"data: 100 kB are needed, and 59\.\d kB are left in"):
        fill("new")

    assert is_there("a", "new") == [True, False]
    assert used.read(0, 1)["x"].tolist() == [0]
    del used
    gc.collect()
    fill("new")
    assert is_there("a", "new") == [False, True]


USING = """
import numpy as np
from memfit.streaming.store.spool import spool
source = spool(iter([]), "a")
print("begun", flush=True)
input()
print(source.read(0, 1)["x"].tolist(), flush=True)
input()
"""


def test_what_another_process_uses_stays_until_that_ends(disk):
    disk(300 * KB)
    fill_one_after_another("a", "b")
    with (
        subprocess.Popen(
            [sys.executable, "-c", USING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process,
        contextlib.ExitStack() as stack,
    ):
        stack.callback(process.kill)
        assert process.stdout.readline() == "begun\n"
        os.utime(find_folder("a"), (0, 0))

        fill("new")

        assert is_there("a", "b", "new") == [True, False, True]
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "[0]\n"
    gc.collect()

    fill("newer")

    assert is_there("a", "new", "newer") == [False, True, True]


def test_pictures_that_do_not_fit_are_refused_before_they_are_decoded(disk, tmp_path):
    (tmp_path / "photos" / "cat").mkdir(parents=True)
    Image.new("RGB", (20, 10)).save(tmp_path / "photos" / "cat" / "a.png")
    (tmp_path / "photos" / "cat" / "b.png").write_bytes(b"not read")
    disk(100 * KB)

    with pytest.raises(
        DataError,
        match=r"2 pictures of 200 x 300: 360 kB are needed, and 80\.0 kB are left .*smaller",
    ):
        open_data(tmp_path / "photos", ReadOptions(image_size=(200, 300)))

    assert list(find_cache().iterdir()) == []
