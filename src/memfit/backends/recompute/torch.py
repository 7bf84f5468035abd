"""PyTorch: `torch.utils.checkpoint`.

Keras's `tree` leaves cycles on torch that hold what layers have made. They are collected after each
run of a block; else blocks that were recomputed would stay until the step is over.
"""

import gc
from collections.abc import Sequence
from typing import Any

from memfit.backends.recompute import BlockResult, PureBlock

SHARES_SEED = True


def run_recomputed(
    block: PureBlock, trainable: Sequence[Any], state: Sequence[Any], inputs: Sequence[Any]
) -> BlockResult:
    """Runs `block` under `checkpoint`; its parameters are taken as they are, for their gradients.

    Variables are changed in place on torch, so what is going to change is copied for the second
    run.
    """
    from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

    held = list(state)

    def run(*inputs: Any) -> tuple[list[Any], dict[int, Any]]:
        result = block(None, held, inputs)
        gc.collect(1)
        return result.outputs, dict(result.updates)

    # Stopping early is an error raised through Keras, which rewrites errors and keeps their frames.
    with set_checkpoint_early_stop(False):
        outputs, updates = checkpoint(run, *inputs, use_reentrant=False)
    for place in updates:
        held[place] = held[place].detach().clone()
    return BlockResult(outputs, updates)


def can_repeat(layer: Any) -> bool:
    """Returns whether `layer` has no buffers: modules of torch change theirs in each run."""
    return not (hasattr(layer, "buffers") and any(True for _ in layer.buffers()))
