"""TFRecord as TensorFlow writes it, and records that are wrong."""

import contextlib
import gzip
import io
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from streaming.tf_examples import field, frame, make_example

from memfit.errors import DataError
from memfit.streaming.data.layout import lay_out
from memfit.streaming.data.reading import ReadOptions
from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.settings import LoaderSettings
from memfit.streaming.sources import open_source
from memfit.streaming.sources.tf_example import Examples


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def write(folder, examples, name="data.tfrecord"):
    data = b"".join(frame(one) for one in examples)
    path = folder / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def read(path):
    source = open_source(path)
    return source.read(0, source.num_rows)


WRITER = """
import sys
import numpy as np, tensorflow as tf
rng = np.random.default_rng(0)
f = lambda v: tf.train.Feature(float_list=tf.train.FloatList(value=v))
i = lambda v: tf.train.Feature(int64_list=tf.train.Int64List(value=v))
with tf.io.TFRecordWriter(sys.argv[1], sys.argv[2]) as writer:
    for at in range(500):
        features = {
            "x": f(np.arange(5) + at), "y": i([at]), "many": i([-at, 2**40, 2**63 - 1 - at]),
            "steps": f(np.full(at % 4, at)),
        }
        writer.write(tf.train.Example(features=tf.train.Features(feature=features))
                     .SerializeToString())
"""


@pytest.mark.parametrize(("name", "kind"), [("a.tfrecord", ""), ("a.tfrecord.gz", "GZIP")])
def test_what_tensorflow_writes_is_read(tmp_path, name, kind):
    subprocess.run([sys.executable, "-c", WRITER, tmp_path / name, kind], check=True)

    found = read(tmp_path / name)

    rows = np.arange(500)
    assert np.array_equal(found["x"], (rows[:, None] + np.arange(5)).astype("float32"))
    assert np.array_equal(found["y"], rows)
    assert found["many"][7].tolist() == [-7, 2**40, 2**63 - 8]
    assert np.array_equal(found["steps"].lengths, rows % 4)
    assert found["steps"].values.tolist() == np.repeat(rows, rows % 4).tolist()


def test_values_with_tags_of_their_own_are_read(tmp_path):
    found = read(write(tmp_path, [make_example(x=[1.5, 2.5], y=[-3, 300], is_packed=False)] * 3))

    assert found["x"].tolist() == [[1.5, 2.5]] * 3
    assert found["y"].tolist() == [[-3, 300]] * 3


def test_features_may_come_in_any_order_or_not_at_all(tmp_path):
    records = [
        make_example(a=[1.0], b=[1, 2]),
        make_example(b=[3], a=[2.0]),
        make_example(a=[3.0]),
    ]

    found = read(write(tmp_path, records * 50))

    assert found["a"].tolist() == [1.0, 2.0, 3.0] * 50
    assert found["b"].lengths.tolist() == [2, 1, 0] * 50


def test_sequences_are_padded_in_batches(tmp_path):
    records = [make_example(x=np.full(at % 5, at), y=[at]) for at in range(300)]
    source = open_source(write(tmp_path, records))

    for x, y in Loader(
        source, lay_out(source.schema), LoaderSettings(32, 16_000_000, seed=1)
    ).run():
        assert x.shape == (len(y), (y % 5).max())
        assert np.array_equal(
            (x == y[:, None]).sum(axis=1), np.where(y == 0, (x == 0).sum(1), y % 5)
        )


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-3], r"Record 300 of .* is truncated: the file ends inside it"),
        (lambda data: data[:-60], r"Record 300 of .* is truncated"),
        (lambda data: data[:3], r"Record 1 of .* is truncated"),
        (lambda data: b"x" + data[1:], r"is not a TFRecord file"),
    ],
)
def test_a_truncated_or_foreign_file_is_reported_when_it_is_opened(
    tmp_path, ending, change, message
):
    data = change(b"".join([frame(make_example(x=[1.0] * 20))] * 300))
    path = tmp_path / f"data.tfrecord{ending}"
    path.write_bytes(gzip.compress(data) if ending else data)

    with pytest.raises(DataError, match=message):
        open_source(path)


def test_a_damaged_length_is_reported(tmp_path):
    record = frame(make_example(x=[1.0] * 20))
    damaged = b"\xff" + record[1:]
    (tmp_path / "data.tfrecord").write_bytes(record * 70 + damaged + record)

    with pytest.raises(DataError, match=r"Record 71 of .* is damaged: the checksum of its length"):
        open_source(tmp_path / "data.tfrecord")


def test_damaged_data_is_reported_when_it_is_read(tmp_path):
    path = write(tmp_path, [make_example(x=[1.0] * 20)] * 400)
    data = bytearray(path.read_bytes())
    size = len(data) // 400
    data[size * 333 + 40] ^= 1
    path.write_bytes(data)
    source = open_source(path)

    source.read(0, 333)
    with pytest.raises(DataError, match=r"Record 334 of .* is damaged: the checksum of its data"):
        source.read(100, 400)


@pytest.mark.parametrize(
    ("last", "message"),
    [
        ({"x": [1.0]}, "Record 301 of .* has 1 values of feature 'x'; the first records have 2"),
        ({"x": [1, 2]}, "Record 301 of .* has ints in feature 'x'; records before have floats"),
        ({"x": [1.0, 2.0], "z": [1]}, "Record 301 of .* has a feature 'z' that the first"),
        ({}, "Record 301 of .* has 0 values of feature 'x'"),
        ({"x": b"text"}, "Record 301 of .* has bytes in feature 'x'"),
    ],
)
def test_a_record_that_differs_is_reported(tmp_path, last, message):
    source = open_source(
        write(tmp_path, [*[make_example(x=[1.0, 2.0])] * 300, make_example(**last)])
    )

    with pytest.raises(DataError, match=message):
        source.read(250, 301)


def test_bytes_are_refused_with_the_feature(tmp_path):
    path = write(tmp_path, [make_example(image=b"\xff\xd8", y=[1])])

    with pytest.raises(DataError, match=r"Feature 'image' of .* \(record 1\) holds bytes"):
        open_source(path)


@pytest.mark.parametrize("name", ["data.tfrecord", "data.tfrecord.gz"])
def test_features_that_are_not_asked_for_may_be_anything(tmp_path, name):
    path = write(
        tmp_path, [make_example(image=b"\xff\xd8", y=[at], x=[0.5]) for at in range(9)], name
    )

    found = open_source(path, ReadOptions(columns=["y", "x"])).read(0, 9)

    assert list(found) == ["y", "x"]
    assert found["y"].tolist() == list(range(9))
    with pytest.raises(DataError, match=r"no column 'z' in .*Found: image, x, y"):
        open_source(path, ReadOptions(columns=["x", "z"]))


def test_records_that_are_no_examples_are_refused(tmp_path):
    path = write(tmp_path, [b"\x0a\xff"])

    with pytest.raises(DataError, match=r"Record 1 of .* is not a tf\.train\.Example"):
        open_source(path)
    with pytest.raises(DataError, match="has no features"):
        open_source(write(tmp_path, [b"", b""]))


@given(st.binary(max_size=60))
def test_any_bytes_are_parsed_or_refused(data):
    with contextlib.suppress(DataError):
        Examples("data", [(0, data)]).decode((0, data))


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=9), st.integers(0, 12), st.integers(0, 59)
)
def test_a_changed_byte_is_parsed_or_refused(values, place, byte):
    data = bytearray(make_example(y=values, x=[1.0] * 3))
    data[place] = byte
    with contextlib.suppress(DataError):
        Examples("data", [(0, bytes(data))]).decode((0, bytes(data)))


@pytest.mark.parametrize("name", ["data.tfrecord", "data.tfrecord.gz"])
def test_texts_are_read_whatever_their_length(tmp_path, name):
    texts = ["", "Grüße", "x" * 300] * 150
    records = [make_example(text=one.encode(), y=[at]) for at, one in enumerate(texts)]

    found = read(write(tmp_path, records, name))

    assert found["text"].tolist() == texts
    assert found["y"].tolist() == list(range(450))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_pictures_are_decoded_to_one_size(tmp_path, kind):
    def encode(at):
        data = io.BytesIO()
        Image.new("RGB", (8 + at, 6), (at, 50, 100)).save(data, kind)
        return data.getvalue()

    path = write(tmp_path, [make_example(image=encode(at), y=[at]) for at in range(9)])

    found = open_source(path, ReadOptions(image_size=(4, 5))).read(0, 9)

    assert found["image"].shape == (9, 4, 5, 3)
    assert (
        np.abs(found["image"][:, 0, 0].astype(int) - [[at, 50, 100] for at in range(9)]).max() < 9
    )
    assert found["y"].tolist() == list(range(9))
    with pytest.raises(DataError, match="The pictures differ in size"):
        open_source(path)


def test_a_picture_that_cannot_be_decoded_is_named(tmp_path):
    path = write(tmp_path, [make_example(image=b"\xff\xd8\xff broken")])

    with pytest.raises(DataError, match=r"Feature 'image' of record 1 of .* is a picture that"):
        open_source(path)


def test_several_byte_strings_in_a_record_are_refused(tmp_path):
    several = field(1, field(1, field(1, b"words") + field(2, field(1, field(1, b"a") * 3))))

    with pytest.raises(DataError, match=r"'words' of .* \(record 1\) holds bytes in 3 values"):
        open_source(write(tmp_path, [several]))


@pytest.mark.parametrize(
    ("module", "package"), [("google_crc32c", "google-crc32c"), ("google.protobuf", "protobuf")]
)
def test_a_missing_package_is_named_with_the_line_that_installs_it(tmp_path, module, package):
    path = write(tmp_path, [make_example(y=[1])])
    code = f"""
import sys
sys.modules[{module!r}] = None
from memfit.streaming.sources import open_source
open_source({str(path)!r})
"""

    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)

    assert f'TFRecord files need {package}: pip install "memfit[tfrecord]".' in done.stderr
