"""Datasets of Hugging Face: shapes, sequences, images, transforms, and what is refused."""

import datasets
import numpy as np
import pytest

from memfit.errors import DataError, UsageError
from memfit.streaming.data.ragged import Ragged
from memfit.streaming.data.reading import ReadOptions
from memfit.streaming.open_data import open_data


def read_all(value, **options):
    source, _ = open_data(value, ReadOptions(**options))
    return source.read(0, source.num_rows)


def test_labels_shapes_and_sequences():
    features = datasets.Features(
        {
            "image": datasets.Array2D((2, 3), "uint8"),
            "label": datasets.ClassLabel(names=["cat", "dog"]),
            "tokens": datasets.List(datasets.Value("int32")),
            "fixed": datasets.List(datasets.Value("float32"), length=2),
        }
    )
    data = datasets.Dataset.from_dict(
        {
            "image": [np.full((2, 3), i, "uint8") for i in range(4)],
            "label": [0, 1, 1, 0],
            "tokens": [[1, 2], [], [3], [4, 5, 6]],
            "fixed": [[i, i] for i in range(4)],
        },
        features=features,
    )

    found = read_all(data)

    assert found["image"].shape == (4, 2, 3)
    assert found["image"].dtype == np.uint8
    assert found["image"][3].tolist() == [[3] * 3] * 2
    assert found["label"].tolist() == [0, 1, 1, 0]
    assert isinstance(found["tokens"], Ragged)
    assert found["tokens"].pad().tolist() == [[1, 2, 0], [0, 0, 0], [3, 0, 0], [4, 5, 6]]
    assert found["fixed"].tolist() == [[i, i] for i in range(4)]


def test_columns_are_chosen_by_format_or_name():
    data = datasets.Dataset.from_dict({"text": ["a", "b"], "n": [1, 2], "m": [3, 4]})

    assert list(read_all(data.with_format("numpy", columns=["n"]))) == ["n"]
    assert list(read_all(data, columns=["m", "n"])) == ["m", "n"]
    with pytest.raises(
        DataError, match=r"There is no column 'k' in the Dataset\. Found: text, n, m"
    ):
        open_data(data, ReadOptions(columns=["k"]))


def test_images_are_decoded_by_the_dataset():
    pytest.importorskip("PIL")
    images = [np.full((4, 5, 3), i * 20, "uint8") for i in range(3)]
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    data = datasets.Dataset.from_dict({"image": images, "label": [0, 1, 2]}, features=features)

    found = read_all(data)

    assert np.array_equal(found["image"], images)
    assert found["label"].tolist() == [0, 1, 2]


def test_a_transform_makes_the_rows():
    data = datasets.Dataset.from_dict({"n": [1, 2, 3]})

    def double(batch):
        return {"twice": [np.float32(2 * one) for one in batch["n"]]}

    found = read_all(data.with_transform(double))

    assert found["twice"].tolist() == [2, 4, 6]
    assert list(read_all(data.with_transform(double), columns=["twice"])) == ["twice"]


def test_nulls_are_nan_among_fractions_and_refused_elsewhere():
    data = datasets.Dataset.from_dict({"f": [0.5, None], "n": [1, None]})

    assert np.isnan(read_all(data, columns=["f"])["f"][1])
    with pytest.raises(DataError, match=r"'n' of the Dataset, rows 0 to 1, has 1 null"):
        read_all(data)


def test_one_of_several_datasets_has_to_be_chosen():
    one = datasets.Dataset.from_dict({"n": [1]})

    with pytest.raises(UsageError, match=r"several datasets: train, test.*data\['train'\]"):
        open_data(datasets.DatasetDict({"train": one, "test": one}))


def test_what_cannot_be_streamed_is_refused():
    with pytest.raises(DataError, match=r"The Dataset has no rows"):
        open_data(datasets.Dataset.from_dict({"n": []}))
    with pytest.raises(DataError, match=r"'t' of the Dataset holds text"):
        open_data(datasets.Dataset.from_dict({"t": ["a"]}))
    with pytest.raises(DataError, match="lists of lists of different length"):
        open_data(datasets.Dataset.from_dict({"l": [[[1, 2], [3]], [[1], [2]]]}))
