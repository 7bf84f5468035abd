"""Work that XLA must not begin early: what it computes early, it keeps.

XLA removes barriers on the CPU before it orders the work, so this takes a condition.
"""

from collections.abc import Callable
from typing import Any


def run_once_there(run: Callable[..., Any], awaited: Any, *given: Any) -> Any:
    """Returns `run(*given)`, which does not begin before `awaited` is computed.

    Args:
        run: Returns tensors in any structure.
        awaited: Tensors in any structure; without a floating-point one nothing is waited for.
        *given: What it is called with.
    """
    import jax
    import jax.numpy as jnp

    floats = [one for one in jax.tree.leaves(awaited) if has_gradient(one) and one.size]
    if not floats:
        return run(*given)
    first = jnp.ravel(floats[0])[0]
    is_there = (first == first) | (first != first)  # noqa: PLR0124  # always, but XLA cannot know
    shapes = jax.eval_shape(run, *given)
    return jax.lax.cond(
        is_there,
        run,
        lambda *_: jax.tree.map(lambda one: jnp.zeros(one.shape, one.dtype), shapes),
        *given,
    )


def has_gradient(tensor: Any) -> bool:
    """Whether a gradient can be computed with respect to its numbers."""
    import jax.numpy as jnp

    return bool(jnp.issubdtype(tensor.dtype, jnp.inexact))
