"""How Keras takes data into `fit`: the adapters, their queues, and what they cannot see."""

from types import FrameType
from typing import Any

from memfit.keras_private.names import relies_on


@relies_on("keras.src.trainers.data_adapters.data_adapter.DataAdapter")
def data_adapter_class() -> Any:
    """Returns the class whose objects Keras uses as they are. The same since Keras 3.5.

    Of a `PyDataset` it would permute the batches, and feed them slowly into TensorFlow.
    """
    from keras.src.trainers.data_adapters.data_adapter import DataAdapter

    return DataAdapter


@relies_on("keras.src.trainers.epoch_iterator.EpochIterator")
def has_class_weight(caller: FrameType) -> bool:
    """Returns whether `fit` was called with `class_weight`, by the frame that asks an adapter.

    That is `EpochIterator.__init__`; it gives an adapter nothing else to see it by.
    """
    is_init = caller.f_code.co_name == "__init__"
    return is_init and caller.f_locals.get("class_weight") is not None


@relies_on("keras.src.trainers.data_adapters.py_dataset_adapter.PyDatasetEnqueuer")
def enqueuer_class() -> Any:
    """Returns the class of the queues in which batches of a `PyDataset` with workers wait."""
    from keras.src.trainers.data_adapters.py_dataset_adapter import PyDatasetEnqueuer

    return PyDatasetEnqueuer
