"""Which layers look at the whole batch, and what may be done about it."""

from typing import Any

from memfit.keras_private.layers import all_layers


def find_batchnorm(model: Any) -> list[Any]:
    """Returns the layers that normalise over the batch while training."""
    return [
        layer
        for layer in all_layers(model)
        if type(layer).__name__ == "BatchNormalization" and layer.trainable
    ]


def moving_statistics(model: Any) -> list[Any]:
    """Returns the variables of such layers that each batch moves."""
    return [
        one for layer in find_batchnorm(model) for one in (layer.moving_mean, layer.moving_variance)
    ]


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
