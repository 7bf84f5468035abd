"""Datasets of frameworks as sources. Run by tests/conformance/test_within.py, for each backend."""

import os

import numpy as np
import pytest

import memfit

BACKEND = os.environ["KERAS_BACKEND"]
NUM_ROWS = 100
only_torch = pytest.mark.skipif(BACKEND != "torch", reason="about torch")


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
