"""PyTorch: a plain loop over the micro-batches, each recomputed for itself.

The engine runs what was recorded last first, so that the micro-batches come one after another in
the backward pass too.
"""

from typing import Any

import torch

from memfit.backends.micro_batches import MicroBatches
from memfit.backends.recompute import BlockResult
from memfit.backends.recompute.torch import run_recomputed
from memfit.backends.segments import Given, Runner, Segment, SegmentResult


def make_runner(model: Any, micro_batches: MicroBatches) -> Runner:
    """Returns what runs a segment in micro-batches of the size that is set at the time."""
    return lambda segment, given: _run(segment, given, micro_batches.size)


def _run(segment: Segment, given: Given, size: int) -> SegmentResult:
    # Not by slices: the gradient of each would be as large as the whole.
    cut = [one.split(size) for one in given.inputs]
    num_shared, num_samples = len(given.shared), 0

    def block(_: Any, state: Any, tensors: Any) -> BlockResult:
        nonlocal num_samples
        made = segment(None, tensors[:num_shared], state, tensors[num_shared:])
        num_samples = len(made.samples)
        return BlockResult([*made.samples, *made.micro_batches], dict(enumerate(made.state)))

    state = list(given.state)
    parts = []
    for micro_batch in zip(*cut, strict=True):
        result = run_recomputed(block, given.trainable, state, [*given.shared, *micro_batch])
        state = [result.updates[place] for place in range(len(state))]
        parts.append(result.outputs)
    whole = [torch.cat(rows) for rows in zip(*parts, strict=True)]
    return SegmentResult(whole[:num_samples], whole[num_samples:], state)
