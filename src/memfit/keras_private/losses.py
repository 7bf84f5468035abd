"""Compiled losses and metrics: `compile` wraps them, `fit` builds them with the first batch."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from memfit.keras_private.names import relies_on

_TRAINER = "keras.src.trainers.trainer.Trainer"
_LOSS = "keras.src.trainers.compile_utils.CompileLoss"
_METRICS = "keras.src.trainers.compile_utils.CompileMetrics"


@relies_on(f"{_TRAINER}._compile_loss", f"{_TRAINER}._compile_metrics")
def are_losses_built(model: Any) -> bool:
    """Returns whether losses and metrics of a compiled model have seen a batch."""
    parts = (model._compile_loss, model._compile_metrics)
    return all(part is None or part.built for part in parts)


@relies_on("keras.src.metrics.reduction_metrics.MeanMetricWrapper._fn")
def metric_function(metric: Any) -> Any | None:
    """Returns the function that a `MeanMetricWrapper` averages; `None` for other metrics."""
    return getattr(metric, "_fn", None)


@relies_on(f"{_TRAINER}._compile_loss", f"{_LOSS}._flat_losses")
def built_losses(model: Any) -> list[Any]:
    """Returns the losses as they are called, one named tuple with a `loss` each."""
    compiled = model._compile_loss
    return [] if compiled is None else list(compiled._flat_losses or ())


@relies_on(f"{_TRAINER}._compile_loss", f"{_LOSS}._metrics")
def loss_trackers(model: Any) -> list[Any]:
    """Returns the metrics that track single losses; there is none where there is one loss."""
    return [] if model._compile_loss is None else model._compile_loss._metrics


@relies_on(f"{_TRAINER}._compile_loss", f"{_LOSS}._metrics")
@contextlib.contextmanager
def untracked(model: Any) -> Iterator[None]:
    """Keeps the metrics that track single losses still."""
    trackers = loss_trackers(model)
    if trackers:
        model._compile_loss._metrics = [None] * len(trackers)
    try:
        yield
    finally:
        if trackers:
            model._compile_loss._metrics = trackers


class _Noting:
    """Stands in for a metric that tracks a loss."""

    def __init__(self, values: list[Any]) -> None:
        self._values = values

    def update_state(self, value: Any, sample_weight: Any = None) -> None:
        self._values.append(value)


@relies_on(f"{_TRAINER}._compile_loss", f"{_LOSS}._metrics")
@contextlib.contextmanager
def noted_losses(model: Any) -> Iterator[list[Any]]:
    """Gives a list that gets what the metrics that track single losses would have been told."""
    values: list[Any] = []
    trackers = loss_trackers(model)
    if trackers:
        model._compile_loss._metrics = [_Noting(values) for _ in trackers]
    try:
        yield values
    finally:
        if trackers:
            model._compile_loss._metrics = trackers


@relies_on(f"{_TRAINER}._compute_loss")
def compute_loss(  # those of Keras
    model: Any, *, x: Any, y: Any, y_pred: Any, sample_weight: Any, training: bool
) -> Any:
    """Returns the loss, by the model's own `compute_loss` with or without its `training`."""
    return model._compute_loss(
        x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=training
    )


@relies_on(f"{_TRAINER}._loss_tracker")
def track_loss(model: Any, loss: Any, num_samples: Any) -> None:
    """Adds a loss to the metric that `fit` shows as `loss`."""
    model._loss_tracker.update_state(loss, sample_weight=num_samples)


@relies_on(f"{_TRAINER}._loss_tracker")
def loss_tracker(model: Any) -> Any:
    """Returns the metric that `fit` shows as `loss`: another one each time a model is compiled."""
    return model._loss_tracker


@relies_on(f"{_TRAINER}._compile_config")
def compiled_with(model: Any) -> Mapping[str, Any]:
    """Returns what was given to `compile`, as it was given."""
    found: Mapping[str, Any] = model._compile_config.config
    return found
