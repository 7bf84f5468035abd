"""torch takes tensors from a `DataLoader` that neither batches nor copies."""

from collections.abc import Iterator
from typing import Any

from memfit.backends.feeds import Fed, refuse_text


def make_feed(fed: Fed) -> Any:
    """Returns a `DataLoader` of batches, on the device that Keras uses.

    Raises:
        UsageError: They hold text.
    """
    import keras
    from torch.utils.data import DataLoader, IterableDataset

    refuse_text(fed, "torch")

    class Rows(IterableDataset):  # type: ignore[misc]  # torch gives Any
        def __iter__(self) -> Iterator[Any]:
            for batch in fed.begin():
                yield keras.tree.map_structure(keras.ops.convert_to_tensor, batch)

        def __len__(self) -> int:
            return fed.num_batches

    return DataLoader(Rows(), batch_size=None)
