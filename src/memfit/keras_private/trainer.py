"""What `fit` keeps in a model: how it builds it, distributes it and saves what compiled it."""

import contextlib
from collections.abc import Iterator, Mapping
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


@relies_on(_TRAINER)
def trainer_class() -> Any:
    """Returns the class whose `__init__` is the one that all models call."""
    from keras.src.trainers.trainer import Trainer

    return Trainer


@relies_on("keras.src.layers.layer.Layer._call_has_training_arg")
def call_model(model: Any, x: Any, *, is_training: bool) -> Any:
    """Calls the model as a step does: with `training` where its `call` takes it."""
    return model(x, **training_argument(model, is_training=is_training))


@relies_on("keras.src.layers.layer.Layer._call_has_training_arg")
def training_argument(model: Any, *, is_training: bool = True) -> dict[str, bool]:
    """Returns `training` as an argument, for a model whose `call` takes it."""
    return {"training": is_training} if model._call_has_training_arg else {}


@relies_on("keras.src.backend.compute_output_spec")
def output_spec(model: Any, x: Any) -> Any:
    """Returns symbolic tensors like the predictions for `x`, and runs nothing."""
    from keras.src import backend

    return backend.compute_output_spec(model, x, training=False)


@relies_on(
    "keras.src.backend.tensorflow.trainer.TensorFlowTrainer._autoconvert_optionals",
    backend="tensorflow",
)
def accepting_optionals(model: Any, function: Any) -> Any:
    """Returns a step that takes `None` where the data has a `tf.experimental.Optional`."""
    return model._autoconvert_optionals(function)


@relies_on(
    "keras.src.backend.jax.trainer.JAXTrainer._jax_state",
    "keras.src.backend.jax.trainer.JAXTrainer._jax_state_synced",
    "keras.src.backend.jax.trainer.JAXTrainer.jax_state_sync",
    backend="jax",
)
def attach_jax_state(model: Any, state: Mapping[str, Any]) -> None:
    """Gives the variables their values, which Keras takes from them while it trains.

    Args:
        model: A model inside `fit` or `evaluate`.
        state: Values by kind: `trainable`, `non_trainable`, `optimizer`, `metrics`.
    """
    model._jax_state = {f"{kind}_variables": values for kind, values in state.items()}
    model._jax_state_synced = False
    model.jax_state_sync()
    model._jax_state = None


@relies_on("keras.src.backend.torch.trainer.TorchTrainer._should_torch_compile", backend="torch")
def is_torch_compiled(model: Any) -> bool:
    """Returns whether the model's steps go through `torch.compile`."""
    return bool(model._should_torch_compile())


@contextlib.contextmanager
def optimizer_replaced(model: Any, optimizer: Any) -> Iterator[None]:
    """Has the model train with another optimizer; the layer takes no note of the exchange."""
    before = model.__dict__["optimizer"]
    model.__dict__["optimizer"] = optimizer
    try:
        yield
    finally:
        model.__dict__["optimizer"] = before
