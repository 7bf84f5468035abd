"""What `fit` keeps in a model: how it builds it, distributes it and saves what compiled it."""

import contextlib
from collections.abc import Iterator
from typing import Any

from memfit.keras_private.layers import all_layers
from memfit.keras_private.losses import are_losses_built
from memfit.keras_private.names import relies_on

_TRAINER = "keras.src.trainers.trainer.Trainer"


@relies_on(f"{_TRAINER}._symbolic_build")
def build_with(model: Any, batch: Any) -> None:
    """Builds layers, losses, metrics and optimizer for such a batch, as `fit` does first."""
    model._symbolic_build(data_batch=batch)


def is_built(model: Any) -> bool:
    """Returns whether Keras would begin `fit` without a look at the data."""
    return all(layer.built for layer in all_layers(model)) and are_losses_built(model)


@relies_on(f"{_TRAINER}._symbolic_build")
@contextlib.contextmanager
def looking_once(model: Any) -> Iterator[None]:
    """Lets `fit` take a first look at its data, as it does with a model that is not built.

    That look draws from the numbers that shuffle: without it the order would be another.
    """
    build = model._symbolic_build

    def look_and_build(iterator: Any = None, data_batch: Any = None) -> None:
        model.__dict__.pop("_symbolic_build", None)
        if iterator is not None:
            for _, _, data in iterator:
                if not isinstance(data, list | tuple):
                    next(data)
                break
        build(iterator=iterator, data_batch=data_batch)

    model.__dict__["_symbolic_build"] = look_and_build
    try:
        yield
    finally:
        model.__dict__.pop("_symbolic_build", None)


@relies_on(
    "keras.src.backend.tensorflow.trainer.TensorFlowTrainer._distribute_strategy",
    backend="tensorflow",
)
def has_distribute_strategy(model: Any) -> bool:
    """Returns whether a model was made under a `tf.distribute` strategy."""
    return getattr(model, "_distribute_strategy", None) is not None


@relies_on(f"{_TRAINER}._compile_config")
def set_optimizer(model: Any, optimizer: Any) -> None:
    """Sets it also in what is saved with the model, or its state could not be loaded again."""
    model.optimizer = optimizer
    compiled_with = getattr(getattr(model, "_compile_config", None), "config", None)
    if compiled_with is not None:
        compiled_with["optimizer"] = optimizer
