"""JAX: live arrays, and caches without names."""

import sys

from memfit.backends.devices.jax import is_initialized
from memfit.backends.registries import Counted


def is_compiler_loaded() -> bool:
    """Returns `True`: Keras loads nothing to clear its session."""
    return True


def count() -> Counted:
    """Counts the arrays that are alive, by whomever they are held."""
    jax = sys.modules.get("jax")
    if jax is None or not is_initialized():
        return Counted()
    arrays = jax.live_arrays()
    return Counted({"tensors": len(arrays)}, {"tensors": sum(one.nbytes for one in arrays)})


def registered() -> frozenset[str]:
    """Returns nothing: JAX keeps what it compiled in caches without names."""
    return frozenset()


def release(names: frozenset[str]) -> None:
    """Empties JAX's caches. Functions that are used again are compiled again."""
    sys.modules["jax"].clear_caches()
