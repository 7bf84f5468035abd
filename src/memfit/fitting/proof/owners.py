"""Who owns a loss or a variable, in words: the layer, the output, the metric."""

from collections.abc import Iterator
from typing import Any

from memfit.fitting.proof.culprit import name_operation
from memfit.keras_private.layers import all_layers
from memfit.keras_private.losses import built_losses, metric_function


def name_loss(model: Any, output: int) -> str:
    """Returns the loss of an output in words.

    Args:
        model: A compiled model.
        output: Which of its outputs.
    """
    import keras

    if type(model).compute_loss is not keras.Model.compute_loss:
        return f"compute_loss() of {type(model).__name__}"
    losses = [one.loss for one in built_losses(model)]
    if not losses:
        return "the loss"
    loss = losses[min(output, len(losses) - 1)]
    names = getattr(model, "output_names", None) or ()
    where = f" of the output {names[output]!r}" if 1 < len(names) > output else ""
    return f"the loss {loss.name!r}{where}"


def name_state(model: Any, variable: Any) -> str:
    """Returns a variable that is not trained in words, with the layer that has it."""
    for layer in reversed(all_layers(model)):
        if any(one is variable for one in layer.variables):
            return f"{name_operation(layer)} with its variable {variable.name!r}"
    return f"the variable {variable.path!r}"


def name_metric(model: Any, variable: Any) -> str:
    """Returns the metric that has a variable in words."""
    for metric in _all_metrics(model.metrics):
        if any(one is variable for one in metric.variables):
            function = metric_function(metric)
            name = metric.name if function is None else getattr(function, "__name__", metric.name)
            return f"the metric {name!r}"
    return f"the metric with the variable {variable.path!r}"


def _all_metrics(metrics: Any) -> Iterator[Any]:
    """Gives metrics, the innermost first."""
    for metric in metrics:
        yield from _all_metrics(getattr(metric, "metrics", ()))
        yield metric
