"""What `fit` keeps in a model: how it builds it, distributes it and saves what compiled it."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
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
    """Returns whether layers, losses and metrics have seen a batch."""
    return all(layer.built for layer in all_layers(model)) and are_losses_built(model)


# What `fit` keeps in a model while it runs; `_jax_state` only on JAX.
_RUNNING = ("stop_training", "stop_evaluating", "history", "_initial_epoch", "_eval_epoch_iterator")


@relies_on(f"{_TRAINER}._initial_epoch")
@contextlib.contextmanager
def running_fit_kept(model: Any) -> Iterator[None]:
    """Lets the model be trained inside of its `fit`, which then goes on as if that never was.

    Its weights, optimizer and seeds are for the caller to put back.
    """
    own = model.__dict__
    before = {name: own[name] for name in _RUNNING if name in own}
    told = _read_metrics(model)
    try:
        yield
    finally:
        for name in _RUNNING:
            own.pop(name, None)
        own.update(before)
        if len(told) != len(model.metrics_variables):
            model.reset_metrics()  # of those that were built
        for variable, value in told:
            variable.assign(value)


def _read_metrics(model: Any) -> list[tuple[Any, Any]]:
    from keras import ops

    return [(one, ops.convert_to_numpy(one.value).copy()) for one in model.metrics_variables]


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
def find_fit(model: Any) -> Any:
    """Returns Keras's own `fit` for this model, also where its class has another around it."""
    owners = (one for one in type(model).__mro__ if one.__module__.startswith("keras."))
    return next(vars(one)["fit"] for one in owners if "fit" in vars(one))


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


@relies_on(
    "keras.src.backend.jax.trainer.JAXTrainer._get_jax_state",
    "keras.src.backend.jax.trainer.JAXTrainer._jax_state_synced",
    backend="jax",
)
def take_jax_state(model: Any, kinds: Sequence[str], *, is_purged: bool) -> tuple[Any, ...]:
    """Takes the values out of the variables, as `fit` does before a step.

    Args:
        model: A model inside `fit`.
        kinds: Which: `trainable`, `non_trainable`, `optimizer`, `metrics`.
        is_purged: Whether the variables are left empty.
    """
    asked = {f"{kind}_variables": True for kind in kinds}
    state: tuple[Any, ...] = model._get_jax_state(**asked, purge_model_variables=is_purged)
    model._jax_state_synced = False
    return state


@relies_on("keras.src.backend.common.variables.Variable._value")
def has_values(model: Any) -> bool:
    """Returns whether the variables hold values, which `fit` on JAX takes out of them."""
    return all(one._value is not None for one in model.variables)


@relies_on("keras.src.backend.jax.trainer.JAXTrainer._make_function", backend="jax")
def jax_step(function: Any) -> Any | None:
    """Returns the step that a function of Keras's runs on a batch; `None` if it is another's."""
    return _find_cell(function, "step_function")


def forget_trace(function: Any) -> None:
    """Has the next function of a model traced anew, though this one may live on in a `fit`.

    JAX finds what it has traced by the step, and a method of one model is the same step each time.
    """
    step: Any = jax_step(function)
    if hasattr(step, "clear_cache"):
        step.clear_cache()


@relies_on(
    "keras.src.backend.tensorflow.trainer.TensorFlowTrainer._make_function", backend="tensorflow"
)
def tensorflow_steps(function: Any) -> tuple[Any, Any]:
    """Returns what a function of Keras's calls with an iterator and with a batch, or `None`s."""
    return _find_cell(function, "multi_step_on_iterator"), _find_cell(function, "one_step_on_data")


def _find_cell(function: Any, name: str) -> Any | None:
    """Returns what a function calls by a name of the function around it."""
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    return function.__closure__[names.index(name)].cell_contents if name in names else None


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
