"""Who owns a loss or a variable, in words: the layer, the output, the metric."""

from collections.abc import Iterator
from typing import Any

from memfit.fitting.proof.culprit import name_operation
from memfit.fitting.state.reachable import walk
from memfit.keras_private.layers import all_layers
from memfit.keras_private.losses import built_losses, metric_function
from memfit.slots import attributes_of


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
    """Returns a variable in words, with the layer that has it."""
    for layer in reversed(all_layers(model)):
        if any(one is variable for one in layer.variables):
            return f"{name_operation(layer)} with its variable {variable.name!r}"
    holders = list(_find_holders(model, variable))
    if holders:  # the nearest
        _, layer, name = min(holders, key=lambda holder: holder[0])
        return name_attribute(layer, name)
    return f"the variable {getattr(variable, 'path', variable.name)!r}"


def _find_holders(model: Any, variable: Any) -> Iterator[tuple[int, Any, str]]:
    """Gives layers with an attribute that leads to a variable, and to how much else."""
    for layer in all_layers(model):
        for name, value in attributes_of(layer).items():
            reached = [] if name.startswith("_") else [one.value for one in walk(value)]
            if any(one is variable for one in reached):
                yield len(reached), layer, name


def name_attribute(owner: Any, name: str) -> str:
    """Returns an attribute in words, with the layer or object that has it."""
    import keras

    is_layer = isinstance(owner, keras.Layer)
    who = name_operation(owner) if is_layer else f"the object of {type(owner).__name__}"
    return f"{who} with its attribute {name!r}"


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
