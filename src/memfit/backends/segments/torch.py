"""PyTorch: a plain loop over the pieces, each recomputed for itself.

The engine runs what was recorded last first, so that the pieces come one after another in the
backward pass too.
"""

from typing import Any

import torch

from memfit.backends.micro_batches import Pieces
from memfit.backends.recompute import BlockResult
from memfit.backends.recompute.torch import run_recomputed
from memfit.backends.segments import Given, Made, Runner, Segment


def make_runner(model: Any, pieces: Pieces) -> Runner:
    """Returns what runs a segment in pieces of the size that is set at the time."""
    return lambda segment, given: _run(segment, given, pieces.size)


def _run(segment: Segment, given: Given, size: int) -> Made:
    # Not by slices: the gradient of each would be as large as the whole.
    cut = [one.split(size) for one in given.inputs]
    num_shared, num_samples = len(given.shared), 0

    def block(_: Any, state: Any, tensors: Any) -> BlockResult:
        nonlocal num_samples
        made = segment(None, tensors[:num_shared], state, tensors[num_shared:])
        num_samples = len(made.samples)
        return BlockResult([*made.samples, *made.pieces], dict(enumerate(made.state)))

    state = list(given.state)
    parts = []
    for piece in zip(*cut, strict=True):
        result = run_recomputed(block, given.trainable, state, [*given.shared, *piece])
        state = [result.updates[place] for place in range(len(state))]
        parts.append(result.outputs)
    whole = [torch.cat(rows) for rows in zip(*parts, strict=True)]
    return Made(whole[:num_samples], whole[num_samples:], state)
