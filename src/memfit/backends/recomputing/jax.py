"""JAX: `jax.checkpoint`."""

from collections.abc import Sequence
from typing import Any

from memfit.backends.recomputing import BlockResult, PureBlock


def run_recomputed(
    block: PureBlock, trainable: Sequence[Any], state: Sequence[Any], inputs: Sequence[Any]
) -> BlockResult:
    """Runs `block` under `jax.checkpoint`."""
    import jax

    def run(
        trainable: list[Any], state: list[Any], inputs: list[Any]
    ) -> tuple[list[Any], dict[int, Any]]:
        result = block(trainable, state, inputs)
        return result.outputs, dict(result.updates)

    outputs, updates = jax.checkpoint(run)(list(trainable), list(state), list(inputs))
    return BlockResult(outputs, updates)


def can_repeat(layer: Any) -> bool:
    """Returns `True`: Keras keeps all state in variables on JAX."""
    return True
