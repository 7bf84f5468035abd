"""Which layers look at the whole batch, and what may be done about it."""

from collections.abc import Sequence
from typing import Any

from memfit.errors import UsageError
from memfit.keras_private.layers import all_layers, own_normalisation


def all_batchnorm(model: Any) -> list[Any]:
    """Returns the BatchNormalization layers, and those of classes made of it."""
    import keras

    kind = keras.layers.BatchNormalization
    return [layer for layer in all_layers(model) if isinstance(layer, kind)]


def find_batchnorm(model: Any) -> list[Any]:
    """Returns the layers that normalise over the batch while training."""
    return [layer for layer in all_batchnorm(model) if layer.trainable]


def moving_statistics(model: Any) -> list[Any]:
    """Returns the variables of such layers that each batch moves."""
    return [
        one
        for layer in find_batchnorm(model)
        for one in layer.non_trainable_variables
        if "float" in one.dtype
    ]


def check_known(layers: Sequence[Any]) -> None:
    """Raises if one of these layers normalises in a way of its own."""
    for layer in layers:
        changed = own_normalisation(layer)
        if changed is not None:
            raise UsageError(
                f"The layer {layer.name!r} is a {type(layer).__name__}: a BatchNormalization with "
                f"a {changed}() of its own, of which memfit cannot tell what it takes from the "
                'whole batch. Give batchnorm="micro", which calls it for each micro-batch by '
                "itself, or train in whole batches."
            )


def explain_batchnorm(layers: list[Any]) -> str:
    """Says what stands in the way of cutting batches, and what can be done."""
    first = layers[0].name
    others = f" and {len(layers) - 1} more" if len(layers) > 1 else ""
    return (
        f"The model normalises over the whole batch ({first!r}{others}), so micro-batches are not "
        'the same training. Give batchnorm="exact" for the result of the whole batch: about one '
        "more forward pass, and the input of each BatchNormalization stays in memory for the whole "
        'batch; Functional and Sequential models only. Or give batchnorm="micro" to normalise each '
        "micro-batch by itself: no extra time, and results that differ as they would with smaller "
        "batches. GroupNormalization and LayerNormalization do not look at the batch."
    )
