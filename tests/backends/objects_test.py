"""What memfit reads off objects of a framework. Run by tests/backends/test_each_backend.py."""

import keras
import numpy as np
import pytest

from memfit.backends import load

is_torch = keras.backend.backend() == "torch"


@pytest.mark.skipif(not is_torch, reason="only tensors of torch keep their graphs")
def test_a_graph_is_measured_without_computing_any_of_it_again():
    import torch
    from torch.utils.checkpoint import checkpoint

    passes = []

    def block(x):
        passes.append(1)
        return torch.nn.functional.dropout(torch.relu(x), 0.5)

    x = torch.ones(64, 64, requires_grad=True)
    total = checkpoint(block, x, use_reentrant=False).sum()
    before = torch.get_rng_state()

    size_bytes = load("objects").graph_size_bytes([total])

    assert len(passes) == 1
    assert torch.equal(torch.get_rng_state(), before)
    assert size_bytes >= 64 * 64 * 4


@pytest.mark.skipif(not is_torch, reason="only tensors of torch keep their graphs")
def test_a_graph_takes_what_its_steps_gave_and_no_views_or_weights():
    import torch

    layers = [torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU()) for _ in range(6)]
    model = torch.nn.Sequential(*layers)

    out = model(torch.ones(64, 256)).view(-1)

    assert load("objects").graph_size_bytes([out]) == 12 * 64 * 256 * 4


@pytest.mark.skipif(not is_torch, reason="subclasses of torch's tensors say what they are")
def test_a_tensor_that_overrides_everything_is_described_without_being_asked():
    import torch

    calls = []

    class Tensor(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            calls.append(function)
            return super().__torch_function__(function, types, args, kwargs or {})

    Tensor.__module__ = "torch.own"
    tensor = torch.ones(10, 10).as_subclass(Tensor)
    calls.clear()

    known = load("objects").describe(tensor)

    assert not calls
    assert known.size_bytes == 400


def test_a_tensor_is_described_by_its_bytes():
    tensor = keras.ops.convert_to_tensor(np.ones((10, 10), "float32"))

    known = load("objects").describe(tensor)

    assert (known.kind, known.size_bytes) == ("tensor", 400)
