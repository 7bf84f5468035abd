"""What Keras keeps in a layer, and beside tensors: inner layers, variables, masks, losses."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memfit.keras_private.names import relies_on

_LAYER = "keras.src.layers.layer.Layer"
# Inputs compute nothing; data is prepared in full, since a count may have more digits than half
# precision keeps; and code of another library knows nothing of Keras's policies.
_FULL_PRECISION = (
    "keras.src.layers.core.input_layer",
    "keras.src.layers.preprocessing",
    "keras.src.export.tfsm_layer",
    "keras.src.utils.jax_layer",
    "keras.src.utils.torch_utils",
)


@relies_on(f"{_LAYER}._flatten_layers")
def all_layers(layer: Any) -> list[Any]:
    """Returns a model or layer and all layers inside, at any depth (`_flatten_layers`).

    An operation that is no layer has none.
    """
    return list(layer._flatten_layers()) if hasattr(layer, "_flatten_layers") else []


@relies_on(f"{_LAYER}._layers")
def direct_layers(layer: Any) -> list[Any]:
    """Returns the layers that a model or layer holds itself (`_layers`)."""
    return list(layer._layers)


@relies_on(f"{_LAYER}._trainable_variables")
def own_trained_variables(layer: Any) -> list[Any]:
    """Returns the variables made to be trained of this layer alone, also while it is frozen."""
    return list(layer._trainable_variables)


@relies_on(
    f"{_LAYER}._non_trainable_variables",
    f"{_LAYER}._seed_generators",
    "keras.src.random.seed_generator.SeedGenerator.state",
)
def changing_variables(model: Any) -> list[Any]:
    """Returns the variables that a forward pass may change, such as statistics and seeds.

    Weights that are frozen are not among them: they may be large, and nothing writes to them.
    """
    found = []
    for layer in all_layers(model):
        found += layer._non_trainable_variables
        found += [generator.state for generator in layer._seed_generators]
    return list({id(one): one for one in found}.values())


@relies_on(f"{_LAYER}._loss_ids")
def forget_losses(layers: Sequence[Any], losses: Sequence[Any]) -> list[Any]:
    """Returns who added each loss, and has these layers no longer count them as theirs.

    Keras keeps a loss in the scope, and its `id` in `_loss_ids` of the layer that added it.
    """
    owners: list[Any] = []
    inner = [one for layer in layers for one in all_layers(layer)]
    for loss in losses:
        adding = [one for one in inner if id(loss) in one._loss_ids]
        for one in adding:
            one._loss_ids.discard(id(loss))
        owners.append(adding[0])
    return owners


@relies_on("keras.src.backend.get_keras_mask")
def get_mask(tensor: Any) -> Any:
    """Returns the mask that Keras keeps beside a tensor; `None` if there is none."""
    from keras.src import backend

    return backend.get_keras_mask(tensor)


@relies_on("keras.src.backend.set_keras_mask")
def set_mask(tensor: Any, mask: Any) -> None:
    """Puts a mask beside a tensor, where the next layer looks for it."""
    from keras.src import backend

    backend.set_keras_mask(tensor, mask)


@relies_on("keras.src.backend.AutocastScope")
def uncast() -> Any:
    """Returns a scope in which variables give their own values, not those of half precision."""
    from keras.src import backend

    return backend.AutocastScope(None)


@relies_on(*_FULL_PRECISION)
def keeps_full_precision(layer: Any) -> bool:
    """Returns whether a layer must not compute in half precision, by where its class lies."""
    return any(base.__module__.startswith(_FULL_PRECISION) for base in type(layer).__mro__)


_MOMENTS = "keras.src.layers.normalization.batch_normalization.BatchNormalization._moments"


@relies_on(_MOMENTS)
def batch_moments(layer: Any, inputs: Any, mask: Any) -> tuple[Any, Any]:
    """Returns mean and variance of a batch as a BatchNormalization layer computes them."""
    mean, variance = layer._moments(inputs, mask)
    return mean, variance


@relies_on(_MOMENTS)
@contextlib.contextmanager
def moments_given(layer: Any, mean: Any, variance: Any) -> Iterator[None]:
    """Lets a BatchNormalization layer take these for the moments of what it is called with."""
    object.__setattr__(layer, "_moments", lambda *_: (mean, variance))
    try:
        yield
    finally:
        object.__delattr__(layer, "_moments")


@relies_on(_MOMENTS)
def own_normalisation(layer: Any) -> str | None:
    """Returns what a class made of BatchNormalization does itself: how it is called or looks."""
    import keras

    def is_own(name: str) -> bool:
        original = getattr(keras.layers.BatchNormalization, name)
        return name in vars(layer) or getattr(type(layer), name) is not original

    return next(filter(is_own, ("__call__", "call", "_moments")), None)


@relies_on("builtins.ValueError._keras_call_info_injected")
def is_raised_anew(error: BaseException) -> bool:
    """Returns whether Keras made this error of one inside a layer, which is its `__context__`.

    Keras raises it `from None` and marks it with `_keras_call_info_injected`.
    """
    return hasattr(error, "_keras_call_info_injected")


# Where a Keras variable keeps its tensor.
VALUE = "_value"


@relies_on("keras.src.backend.common.variables.Variable._value")
def stored_value(attributes: Mapping[str, Any]) -> Any:
    """Returns the tensor of a Keras variable, by its attributes, so that no property runs."""
    return attributes.get(VALUE)


@relies_on(f"{_LAYER}._dtype_policy")
@contextlib.contextmanager
def full_precision(model: Any) -> Iterator[None]:
    """Has all layers compute in the precision of their variables."""
    import keras

    lowered = [
        (one, one._dtype_policy)
        for one in all_layers(model)
        if one.compute_dtype != one.variable_dtype
    ]
    for layer, policy in lowered:
        layer._dtype_policy = keras.DTypePolicy(policy.variable_dtype)
    try:
        yield
    finally:
        for layer, policy in lowered:
            layer._dtype_policy = policy


@relies_on(f"{_LAYER}._losses")
def own_added_losses(layer: Any) -> list[Any]:
    """Returns the losses that a layer itself added in its last call, outside of a step on JAX."""
    return list(layer._losses)


@relies_on(f"{_LAYER}._clear_losses")
def forget_added_losses(model: Any) -> None:
    """Has all layers forget the losses that they added in the last call."""
    model._clear_losses()
