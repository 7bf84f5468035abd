"""Micro-batches on torch: a plain loop; gradients add up in `.grad`."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from memfit.backends.micro_batches import MicroBatches
from memfit.backends.micro_batches.batch_parts import check, cut, flatten, unpack
from memfit.backends.micro_batches.loss_weights import Totals, counted, weighed
from memfit.backends.state.torch import get_random_state, set_random_state
from memfit.keras_private.layers import changing_variables, get_mask, set_mask
from memfit.keras_private.losses import compute_loss, track_loss
from memfit.keras_private.trainer import call_model


def make_train_step(model: Any, micro_batches: MicroBatches) -> Any:
    """Returns a step that runs the micro-batches of a batch and updates the weights once."""
    return Loop(micro_batches, is_training=True).train_step


def make_test_step(model: Any, micro_batches: MicroBatches) -> Any:
    """Returns a step that evaluates the micro-batches of a batch."""
    return Loop(micro_batches, is_training=False).test_step


def is_dense(leaf: Any) -> bool:
    """Returns whether rows of an array can be taken out of it."""
    if isinstance(leaf, torch.Tensor):
        return leaf.layout is torch.strided and not leaf.is_nested
    return isinstance(leaf, np.ndarray)


class Loop:
    """The micro-batches of a batch, one after another."""

    def __init__(self, micro_batches: MicroBatches, *, is_training: bool) -> None:
        self._micro_batches = micro_batches
        self._is_training = is_training
        self._totals = Totals()

    def train_step(self, model: Any, data: Any) -> Any:
        """Stands in for the model's own."""
        logs = self.learn(model, data)
        update(model)
        return logs

    def learn(self, model: Any, data: Any) -> Any:
        """Returns the logs and leaves the gradients of the batch in the weights' `.grad`."""
        return self._run(model, data)

    def test_step(self, model: Any, data: Any) -> Any:
        """Stands in for the model's own."""
        with torch.no_grad():
            return self._run(model, data)

    def _run(self, model: Any, data: Any) -> Any:
        self._micro_batches.renew(is_training=self._is_training)
        if len(flatten(data)[0]) <= self._micro_batches.size:
            return self._attempt(model, _with_own_weights(data), None)
        check(data, is_dense)
        before = _Before(model)

        def count(number: int) -> list[Any]:
            totals = self._count(model, _with_own_weights(data), number)
            before.put_back()
            return totals

        return self._totals.run(
            lambda totals: self._attempt(model, _with_own_weights(data), totals),
            count,
            before.put_back,
        )

    def _attempt(self, model: Any, data: Any, totals: Sequence[Any] | None) -> Any:
        """Returns the logs, and leaves gradients where there are any."""
        if self._is_training:
            model.zero_grad()
        num_samples = len(flatten(data)[0])
        averages = _Averages(self._micro_batches.averaged if self._is_training else ())
        predictions = []
        for micro_batch in self._cut(data):
            share = len(flatten(micro_batch)[0]) / num_samples if num_samples else 1.0
            y_pred = self._learn(model, micro_batch, share, totals)
            averages.add(share)
            if self._micro_batches.collects:
                predictions.append(y_pred)
            else:
                x, y, sample_weight = unpack(micro_batch)
                logs = model.compute_metrics(x, y, y_pred, sample_weight=sample_weight)
            del y_pred
            if self._micro_batches.after_each is not None:
                self._micro_batches.after_each()
        averages.assign()
        if self._micro_batches.collects:
            x, y, sample_weight = unpack(cut(data, _as_tensor))
            logs = model.compute_metrics(x, y, _join(predictions), sample_weight=sample_weight)
        return logs

    def _learn(self, model: Any, micro_batch: Any, share: float, totals: Any) -> Any:
        """Adds the gradients of a micro-batch, tells its loss, and returns its predictions."""
        with weighed(share, totals):
            y_pred, loss = self._compute(model, micro_batch)
        track_loss(model, loss.detach(), len(flatten(micro_batch)[0]))
        if self._is_training and model.trainable_weights:
            (model.optimizer.scale_loss(loss) * share).backward()
        return _detached(y_pred)

    def _compute(self, model: Any, micro_batch: Any) -> tuple[Any, Any]:
        """Returns predictions and loss of a micro-batch."""
        x, y, sample_weight = unpack(micro_batch)
        y_pred = call_model(model, x, is_training=self._is_training)
        loss = compute_loss(
            model,
            x=x,
            y=y,
            y_pred=y_pred,
            sample_weight=sample_weight,
            training=self._is_training,
        )
        return y_pred, loss

    def _cut(self, data: Any) -> Iterator[Any]:
        """Yields the micro-batches, as tensors."""
        size, num_samples = self._micro_batches.size, len(flatten(data)[0])
        if num_samples <= size:
            yield cut(data, _as_tensor)
            return
        for begin in range(0, num_samples, size):
            yield cut(data, lambda leaf: _as_tensor(leaf[begin : begin + size]))  # noqa: B023

    def _count(self, model: Any, data: Any, number: int) -> list[Any]:
        """Returns what each loss is averaged over, for the whole batch."""
        totals: list[Any] = [0.0] * number
        for micro_batch in self._cut(data):
            with torch.no_grad(), counted() as counts:
                self._compute(model, micro_batch)
            # If there are others this time, the attempt that follows tells.
            totals = [total + count for total, count in zip(totals, counts, strict=False)]
        return totals


def update(model: Any) -> None:
    """Updates the weights by their gradients."""
    weights = model.trainable_weights[:]
    if weights:
        with torch.no_grad():
            model.optimizer.apply([weight.value.grad for weight in weights], weights)


class _Before:
    """What a forward pass changes, as it was before: an attempt may have to begin anew."""

    def __init__(self, model: Any) -> None:
        changing = [*changing_variables(model), *model.metrics_variables]
        self._values = [(one, one.value.detach().clone()) for one in changing]
        self._random = get_random_state()

    def put_back(self) -> None:
        with torch.no_grad():
            for one, value in self._values:
                one.assign(value)
        set_random_state(self._random)


class _Averages:
    """Moves variables once a batch, by the mean of what the micro-batches did to them."""

    def __init__(self, variables: Any) -> None:
        self._variables = list(variables)
        self._begin = [one.value.detach().clone() for one in self._variables]
        self._sums = [torch.zeros_like(value) for value in self._begin]

    def add(self, share: float) -> None:
        with torch.no_grad():
            for index, one in enumerate(self._variables):
                self._sums[index] += share * one.value.detach()
                one.assign(self._begin[index])

    def assign(self) -> None:
        with torch.no_grad():
            for one, total in zip(self._variables, self._sums, strict=True):
                one.assign(total)


def _with_own_weights(data: Any) -> tuple[Any, Any, Any]:
    """Returns the batch with a copy of its weights: Keras's losses write into them."""
    x, y, sample_weight = unpack(data)
    return x, y, cut(sample_weight, lambda leaf: _as_tensor(leaf).clone())


def _as_tensor(leaf: Any) -> Any:
    """Returns an array as `fit` hands it over; what torch has no type for stays as it is."""
    import keras

    if isinstance(leaf, torch.Tensor) or leaf.dtype.kind not in "biuf":
        return leaf
    dtype = keras.config.floatx() if leaf.dtype.kind == "f" else None
    return keras.ops.convert_to_tensor(leaf, dtype=dtype)


def _detached(y_pred: Any) -> Any:
    """Predictions without the record of how they were computed; masks stay."""
    import keras

    def detach(tensor: Any) -> Any:
        plain = tensor.detach()
        mask = get_mask(tensor)
        if mask is not None:
            set_mask(plain, mask)
        return plain

    return keras.tree.map_structure(detach, y_pred)


def _join(predictions: list[Any]) -> Any:
    import keras

    def join(*parts: Any) -> Any:
        whole = torch.cat(parts)
        masks = [get_mask(part) for part in parts]
        if masks[0] is not None:
            set_mask(whole, torch.cat(masks))
        return whole

    return keras.tree.map_structure(join, *predictions)
