"""A batch that `fit` takes as it is: no adapter of Keras's copies it or packs it another way."""

import functools
from typing import Any

from memfit.backends import load
from memfit.fitting.batch import count_samples
from memfit.keras_private.data import data_adapter_class


@functools.cache
def one_batch_class() -> Any:
    """Returns the class; made when it is asked for, as it needs Keras."""

    class OneBatch(data_adapter_class()):  # type: ignore[misc]  # Keras ships no types
        """Data of one batch an epoch.

        Args:
            batch: As a step gets it.
        """

        def __init__(self, batch: Any) -> None:
            self._batch = batch

        def _make_feed(self) -> Any:
            return load("first_step").make_feed(self._batch)

        get_numpy_iterator = get_jax_iterator = get_tf_dataset = get_torch_dataloader = _make_feed

        @property
        def num_batches(self) -> int:
            """One."""
            return 1

        @property
        def batch_size(self) -> int:
            """All of it."""
            return count_samples(self._batch)

        @property
        def has_partial_batch(self) -> bool:
            """It is whole."""
            return False

        @property
        def partial_batch_size(self) -> int | None:
            """There is none."""
            return None

    return OneBatch
