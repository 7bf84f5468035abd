"""Folders of pictures: classes, sizes, and pictures that cannot be read."""

import os

import numpy as np
import pytest
from PIL import Image

from memfit.errors import DataError, UsageError
from memfit.streaming.data.reading import ReadOptions
from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.settings import LoaderSettings
from memfit.streaming.open_data import open_data


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "photos"


def draw(path, colour, size=(20, 10), mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(path)
    return path


def test_classes_are_the_names_of_the_folders(folder):
    draw(folder / "dog" / "b.png", (1, 2, 3))
    draw(folder / "dog" / "deep" / "er" / "a.JPG", (0, 0, 0))
    draw(folder / "cat" / "a.bmp", (200, 100, 0))
    draw(folder / "owl" / "a.webp", (9, 9, 9))
    (folder / "cat" / "notes.txt").write_text("no picture")

    source, layout = open_data(folder, ReadOptions(image_size=(4, 6)))

    loader = Loader(source, layout, LoaderSettings(2, 8_000_000))
    assert source.schema[1].categories == ("cat", "dog", "owl")
    assert "y int64 () for cat, dog, owl" in str(loader)
    found = source.read(0, 4)
    assert found["x"].shape == (4, 4, 6, 3)
    assert found["x"].dtype == np.uint8
    assert found["x"][0, 0, 0].tolist() == [200, 100, 0]
    assert found["x"][1, 0, 0].tolist() == [1, 2, 3]
    assert found["y"].tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize(("mode", "colour"), [("L", 7), ("RGBA", (7, 7, 7, 9)), ("P", 0)])
def test_every_picture_becomes_three_colours(folder, mode, colour):
    draw(folder / "a" / "a.png", colour, mode=mode)

    assert open_data(folder)[0].read(0, 1)["x"].shape == (1, 10, 20, 3)


def test_pictures_of_one_size_need_no_other(folder):
    for at in range(3):
        draw(folder / "a" / f"{at}.png", (at, at, at))

    assert open_data(folder)[0].read(0, 3)["x"][:, 0, 0, 0].tolist() == [0, 1, 2]


def test_a_second_stream_decodes_nothing(folder):
    path = draw(folder / "a" / "a.png", (1, 2, 3))
    first = open_data(folder, ReadOptions(image_size=(4, 4)))[0].fingerprint()
    stamp = path.stat()
    path.write_bytes(b"\0" * stamp.st_size)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    assert open_data(folder, ReadOptions(image_size=(4, 4)))[0].fingerprint() == first
    with pytest.raises(DataError, match="cannot be read"):
        open_data(folder, ReadOptions(image_size=(5, 5)))


def test_pictures_of_several_sizes_are_refused_with_what_to_do(folder):
    draw(folder / "a" / "a.png", (1, 2, 3))
    draw(folder / "a" / "b.png", (1, 2, 3), size=(30, 20))

    with pytest.raises(
        DataError, match=r"differ in size: .*10 x 20.*20 x 30.*image_size=\(64, 64\)"
    ):
        open_data(folder)


@pytest.mark.parametrize("ending", ["png", "jpg", "bmp", "webp"])
@pytest.mark.parametrize("keep", [0, 3, 60])
def test_a_picture_that_cannot_be_read_is_named(folder, ending, keep):
    draw(folder / "a" / "a.png", (1, 2, 3))
    rng = np.random.default_rng(0)
    path = folder / "a" / f"broken.{ending}"
    Image.fromarray(rng.integers(0, 256, (50, 50, 3), np.uint8)).save(path)
    path.write_bytes(path.read_bytes()[:keep])

    with pytest.raises(DataError, match=rf"broken\.{ending} is a picture that cannot be read"):
        open_data(folder, ReadOptions(image_size=(4, 4)))

    assert list(folder.parent.rglob("memfit.json")) == []


def test_a_picture_that_would_fill_the_memory_is_named(folder, monkeypatch):
    draw(folder / "a" / "a.png", (1, 2, 3))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 50)

    with pytest.raises(DataError, match=r"a\.png is a picture that cannot be read.*exceeds limit"):
        open_data(folder, ReadOptions(image_size=(4, 4)))


def test_a_class_without_pictures_is_refused(folder):
    draw(folder / "a" / "a.png", (1, 2, 3))
    (folder / "b").mkdir()

    with pytest.raises(DataError, match=r"photos/b holds no picture"):
        open_data(folder)


@pytest.mark.parametrize("size", [64, (64,), (0, 5), (4.0, 4), "64x64"])
def test_a_size_that_is_none_is_refused(folder, size):
    draw(folder / "a" / "a.png", (1, 2, 3))

    with pytest.raises(UsageError, match=r"image_size must be \(height, width\)"):
        open_data(folder, ReadOptions(image_size=size))
