"""JAX: `jax.checkpoint`, and on the CPU a second run inside a condition.

`jax.checkpoint` holds the second run back by a barrier, which XLA removes on the CPU before it
orders the work: both runs are done first and nothing is saved.
"""

from collections.abc import Callable, Sequence
from typing import Any

from memfit.backends.recompute import BlockResult, PureBlock
from memfit.backends.xla_order import has_gradient, run_once_there

SHARES_SEED = False


def run_recomputed(
    block: PureBlock, trainable: Sequence[Any], state: Sequence[Any], inputs: Sequence[Any]
) -> BlockResult:
    """Runs `block` so that its second run waits for the backward pass."""
    import jax

    def run(
        trainable: list[Any], state: list[Any], inputs: list[Any]
    ) -> tuple[list[Any], dict[int, Any]]:
        result = block(trainable, state, inputs)
        return result.outputs, dict(result.updates)

    given = (list(trainable), list(state), list(inputs))
    checkpoint = _checkpoint_on_cpu if jax.default_backend() == "cpu" else jax.checkpoint
    outputs, updates = checkpoint(run)(*given)
    return BlockResult(outputs, updates)


def can_repeat(layer: Any) -> bool:
    """Returns `True`: Keras keeps all state in variables on JAX."""
    return True


def _checkpoint_on_cpu(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns what `jax.checkpoint` does, for reverse mode only."""
    import jax

    def run(*arguments: Any) -> Any:
        converted, read_outside = jax.closure_convert(function, *arguments)
        checkpointed = jax.custom_vjp(converted)
        checkpointed.defvjp(
            lambda *given: (converted(*given), given),
            lambda given, upstream: _second_run(converted, given, upstream),
        )
        return checkpointed(*arguments, *read_outside)

    return run


def _second_run(function: Callable[..., Any], given: Any, upstream: Any) -> Any:
    """Returns the gradients by `given`, `None` for numbers that have none."""
    import jax

    leaves, structure = jax.tree.flatten(given)
    moving = [at for at, leaf in enumerate(leaves) if has_gradient(leaf)]
    arrived = [leaf for leaf in jax.tree.leaves(upstream) if has_gradient(leaf)]
    if not moving or not arrived:
        return jax.tree.unflatten(structure, [None] * len(leaves))

    def made_by(values: list[Any], leaves: list[Any]) -> list[Any]:
        replaced = list(leaves)
        for at, value in zip(moving, values, strict=True):
            replaced[at] = value
        results = jax.tree.leaves(function(*jax.tree.unflatten(structure, replaced)))
        return [result for result in results if has_gradient(result)]

    def again(leaves: list[Any], arrived: list[Any]) -> list[Any]:
        values = [leaves[at] for at in moving]
        _, pull_back = jax.vjp(lambda values: made_by(values, leaves), values)
        gradients: list[Any] = pull_back(arrived)[0]
        return gradients

    # The second run must not begin before the gradient arrives.
    gradients = iter(run_once_there(again, arrived, leaves, arrived))
    by_leaf = [next(gradients) if at in set(moving) else None for at in range(len(leaves))]
    return tuple(jax.tree.unflatten(structure, by_leaf))
