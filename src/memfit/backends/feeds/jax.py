"""JAX takes NumPy arrays: those that begin at a cache line are used where they are."""

from collections.abc import Iterator
from typing import Any

from memfit.backends.feeds import Fed, refuse_text


def make_feed(fed: Fed) -> Iterator[tuple[Any, ...]]:
    """Returns the batches of the next epoch.

    Raises:
        UsageError: They hold text.
    """
    import jax

    refuse_text(fed, "JAX")
    # To an accelerator, Keras moves a batch while the one before is used.
    return fed.begin(ahead=0 if jax.default_backend() == "cpu" else 1)
