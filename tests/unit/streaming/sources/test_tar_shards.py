"""Tar shards: kinds of members, and members that are not trusted."""

import io
import tarfile

import numpy as np
import pytest
from PIL import Image
from streaming.cases import add_member

from memfit.errors import DataError
from memfit.streaming.data.reading import ReadOptions
from memfit.streaming.sources import open_source
from memfit.streaming.store.cache_folder import find_cache


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def saved(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def picture(colour):
    file = io.BytesIO()
    Image.new("RGB", (20, 10), colour).save(file, "png")
    return file.getvalue()


def write(folder, *members):
    with tarfile.open(folder / "data.tar", "w") as archive:
        for name, data in members:
            add_member(archive, name, data)
    return folder / "data.tar"


def test_files_with_one_name_are_a_sample(tmp_path):
    path = write(
        tmp_path,
        ("a/1.png", picture((1, 2, 3))), ("a/1.cls", b"7"), ("a/1.box.json", b"[0.5, 1]"),
        ("a/2.cls", b"8\n"), ("a/2.box.json", b"[0.25, 2]"), ("a/2.png", picture((4, 5, 6))),
    )  # fmt: skip

    found = open_source(path, ReadOptions(image_size=(2, 2))).read(0, 2)

    assert sorted(found) == ["box", "cls", "png"]
    assert found["cls"].tolist() == [7, 8]
    assert found["box"].tolist() == [[0.5, 1.0], [0.25, 2.0]]
    assert found["png"][:, 0, 0].tolist() == [[1, 2, 3], [4, 5, 6]]


def test_arrays_that_differ_in_length_are_sequences(tmp_path):
    members = [(f"{at}.npy", saved(np.full((at, 2), at))) for at in range(1, 5)]

    found = open_source(write(tmp_path, *members)).read(0, 4)["npy"]

    assert found.lengths.tolist() == [1, 2, 3, 4]
    assert found.values.shape == (10, 2)


def test_shards_are_read_one_after_another(tmp_path):
    for at in range(3):
        write(tmp_path, ("a.cls", str(at).encode())).rename(tmp_path / f"s-{at}.tar")

    assert open_source(str(tmp_path / "s-*.tar")).read(0, 3)["cls"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "name", ["/etc/a.cls", "../a.cls", "x/../../a.cls", "..\\a.cls", "C:\\a.cls"]
)
def test_names_that_lead_away_are_refused_and_nothing_is_written(tmp_path, name):
    path = write(tmp_path, ("fine.cls", b"1"), (name, b"1"))

    with pytest.raises(DataError, match="has a name that leads out of the archive") as caught:
        open_source(path)

    assert f"[{name}]" in str(caught.value)
    assert list(find_cache().iterdir()) == list(tmp_path.rglob("*.cls")) == []


def test_links_are_refused(tmp_path):
    with tarfile.open(tmp_path / "data.tar", "w") as archive:
        member = tarfile.TarInfo("a.cls")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(member)

    with pytest.raises(DataError, match=r"\[a\.cls\] is not a regular file: links"):
        open_source(tmp_path / "data.tar")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("a.npy", saved(np.array([{}], object), allow_pickle=True))], r"\[a\.npy\] cannot be"),
        ([("a.npy", saved(np.zeros(9))[:-8])], r"\[a\.npy\] cannot be read"),
        ([("a.cls", b"cat")], r"\[a\.cls\] cannot be read: invalid literal"),
        ([("a.json", b'{"a": 1}')], r"\[a\.json\] cannot be read: expected a number"),
        ([("a.json", b"[1,")], r"\[a\.json\] cannot be read"),
        ([("a.mp4", b"")], r"\[a\.mp4\] is of an unknown kind. Expected \.npy"),
        ([("a.png", b"no")], r"data\.tar\[a\.png\] is a picture that cannot be read"),
        ([("a.cls", b"1"), ("b.npy", b"")], r"\[b\.npy\] belongs to a sample with npy; .* has cls"),
        ([("a.cls", b"1"), ("a.cls", b"2")], r"\[a\.cls\] is a duplicate"),
        ([], r"data\.tar has no rows"),
    ],
)
def test_members_that_cannot_be_read_are_named(tmp_path, members, message):
    with pytest.raises(DataError, match=message):
        open_source(write(tmp_path, *members))

    assert list((tmp_path / "cache").rglob("*.npy")) == []


def test_a_truncated_shard_is_reported(tmp_path):
    path = write(tmp_path, *((f"{at}.npy", saved(np.zeros(500))) for at in range(9)))
    path.write_bytes(path.read_bytes()[:20_000])

    with pytest.raises(DataError, match=r"data\.tar.* truncated"):
        open_source(path)
    path.write_bytes(b"no tar at all" * 100)
    with pytest.raises(DataError, match=r"data\.tar is not a tar file"):
        open_source(path)
