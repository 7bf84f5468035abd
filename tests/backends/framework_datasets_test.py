"""Datasets of frameworks as sources. Run by tests/backends/test_each_backend.py."""

import os

import numpy as np
import pytest

import memfit

BACKEND = os.environ["KERAS_BACKEND"]
NUM_ROWS = 100
only_torch = pytest.mark.skipif(BACKEND != "torch", reason="about torch")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def rows_of(data):
    """The labels of an epoch; the features must be theirs."""
    labels = []
    for x, y in data:
        assert np.array_equal(x, np.stack([y, 2 * y], axis=1))
        labels += np.asarray(y).tolist()
    return labels


@only_torch
@pytest.mark.parametrize("kind", ["tensors", "part", "own"])
def test_torch_datasets_are_read_by_number(kind):
    import torch
    from torch.utils.data import Dataset, Subset, TensorDataset

    y = torch.arange(NUM_ROWS, dtype=torch.float32)
    whole = TensorDataset(torch.stack([y, 2 * y], dim=1), y)

    class Own(Dataset):
        def __len__(self):
            return NUM_ROWS

        def __getitem__(self, index):
            return whole[index]

    part = Subset(TensorDataset(*(torch.cat([one, one]) for one in whole.tensors)), range(NUM_ROWS))
    data = {"tensors": whole, "part": part, "own": Own()}[kind]

    assert rows_of(memfit.stream(data, batch_size=8)) == list(range(NUM_ROWS))
    assert sorted(rows_of(memfit.stream(data, batch_size=8, shuffle=True))) == list(range(NUM_ROWS))


@only_torch
def test_torch_datasets_that_are_iterated_are_read_once():
    import torch
    from torch.utils.data import DataLoader, IterableDataset

    class Own(IterableDataset):
        def __len__(self):
            return NUM_ROWS

        def __iter__(self):
            y = torch.arange(NUM_ROWS, dtype=torch.float32)
            return ((torch.stack([one, 2 * one]), one) for one in y)

    for data in (Own(), memfit.batches(DataLoader(Own(), batch_size=7))):
        assert rows_of(memfit.stream(data, batch_size=8)) == list(range(NUM_ROWS))


@only_torch
def test_streaming_datasets_of_hugging_face_are_read_once():
    import datasets  # its IterableDataset becomes one of torch

    data = datasets.Dataset.from_dict({"n": [1, 2, 3], "t": ["a", "b", "cd"]})

    (batch,) = memfit.stream(data.to_iterable_dataset(), batch_size=3)

    assert batch["n"].tolist() == [1, 2, 3]
    assert batch["t"].tolist() == ["a", "b", "cd"]


only_tensorflow = pytest.mark.skipif(BACKEND != "tensorflow", reason="about tf.data")


@only_tensorflow
@pytest.mark.parametrize("kind", ["rows", "batches", "whole batches", "unknown"])
def test_tf_data_is_read_once(kind):
    import tensorflow as tf

    y = np.arange(NUM_ROWS, dtype="float32")
    rows = tf.data.Dataset.from_tensor_slices((np.stack([y, 2 * y], axis=1), y))
    data = {
        "rows": rows,
        "batches": rows.batch(7).prefetch(2),
        "whole batches": memfit.batches(rows.batch(10, drop_remainder=True)),
        "unknown": rows.filter(lambda x, y: y >= 0),
    }[kind]

    assert rows_of(memfit.stream(data, batch_size=8)) == list(range(NUM_ROWS))


@only_tensorflow
def test_texts_dicts_and_sequences_of_tf_data():
    import tensorflow as tf

    texts = tf.data.Dataset.from_tensor_slices({"t": ["a", "bcd"], "n": [1, 2]})
    ragged = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1, 2], [3]]))
    lengths = tf.data.Dataset.range(1, 4).map(lambda n: (tf.range(n), n))

    (batch,) = memfit.stream(texts, batch_size=2)
    assert batch["t"].tolist() == ["a", "bcd"]
    for data, expected in (
        (ragged.batch(2), [[1, 2], [3, 0]]),
        (memfit.batches(ragged.ragged_batch(2)), [[1, 2], [3, 0]]),
    ):
        (batch,) = memfit.stream(data, batch_size=2)
        assert batch.tolist() == expected
    ((x, y),) = memfit.stream(lengths, batch_size=3)
    assert x.tolist() == [[0, 0, 0], [0, 1, 0], [0, 1, 2]]
    assert y.tolist() == [1, 2, 3]


@only_tensorflow
def test_tf_data_without_end_is_refused():
    import tensorflow as tf

    with pytest.raises(memfit.UsageError, match=r"never ends. Leave out its repeat\(\)"):
        memfit.stream(tf.data.Dataset.range(3).repeat(), batch_size=2)
