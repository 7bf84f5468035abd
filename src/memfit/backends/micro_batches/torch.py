"""Micro-batches on torch: a plain loop; gradients add up in `.grad`."""

from typing import Any

import torch

from memfit.backends.micro_batches import MicroBatches
from memfit.backends.micro_batches.batch_parts import check, cut, flatten, unpack
from memfit.backends.micro_batches.loss_weights import (
    NeedsTotalsError,
    count_losses,
    counted,
    weighed,
)
from memfit.keras_private.layers import get_mask, set_mask
from memfit.keras_private.losses import compute_loss, track_loss, untracked
from memfit.keras_private.trainer import call_model


def make_train_step(model: Any, micro_batches: MicroBatches) -> Any:
    """Returns a step that runs the micro-batches of a batch and updates the weights once."""
    return Loop(micro_batches, is_training=True).train_step


def make_test_step(model: Any, micro_batches: MicroBatches) -> Any:
    """Returns a step that evaluates the micro-batches of a batch."""
    return Loop(micro_batches, is_training=False).test_step


def get_random_state() -> Any:
    """Returns what Keras's Dropout draws from on torch, on the CPU and on each GPU."""
    gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    return torch.get_rng_state(), gpus


def set_random_state(state: Any) -> None:
    """Puts a random state back."""
    torch.set_rng_state(state[0])
    if state[1]:
        torch.cuda.set_rng_state_all(state[1])


class Loop:
    """The micro-batches of a batch, one after another."""

    def __init__(self, micro_batches: MicroBatches, *, is_training: bool) -> None:
        self._micro_batches = micro_batches
        self._is_training = is_training
        self._needs_totals = False

    def train_step(self, model: Any, data: Any) -> Any:
        """Stands in for the model's own."""
        logs = self.learn(model, data)
        update(model)
        return logs

    def learn(self, model: Any, data: Any) -> Any:
        """Returns the logs and leaves the gradients of the batch in the weights' `.grad`."""
        model.zero_grad()
        return self._run(model, data)

    def test_step(self, model: Any, data: Any) -> Any:
        """Stands in for the model's own."""
        with torch.no_grad():
            return self._run(model, data)

    def _run(self, model: Any, data: Any) -> Any:
        check(data)
        num_samples = len(flatten(data)[0])
        totals = self._count(model, data, num_samples) if self._needs_totals else None
        averages = _Averages(self._micro_batches.averaged if self._is_training else ())
        predictions = []
        for micro_batch in self._cut(data, num_samples):
            share = len(flatten(micro_batch)[0]) / num_samples
            y_pred = _call(model, micro_batch, is_training=self._is_training)
            try:
                loss = self._loss(model, micro_batch, y_pred, share, totals)
            except NeedsTotalsError:
                self._needs_totals = True
                return self._run(model, data)
            if self._is_training and model.trainable_weights:
                (model.optimizer.scale_loss(loss) * share).backward()
            averages.add(share)
            if self._micro_batches.collects:
                predictions.append(_detached(y_pred))
            else:
                x, y, sample_weight = unpack(micro_batch)
                logs = model.compute_metrics(x, y, _detached(y_pred), sample_weight=sample_weight)
            del loss, y_pred
            if self._micro_batches.after_each is not None:
                self._micro_batches.after_each()
        averages.assign()
        if self._micro_batches.collects:
            x, y, sample_weight = unpack(data)
            logs = model.compute_metrics(x, y, _join(predictions), sample_weight=sample_weight)
        return logs

    def _loss(self, model: Any, micro_batch: Any, y_pred: Any, share: float, totals: Any) -> Any:
        x, y, sample_weight = unpack(micro_batch)
        with weighed(model, share, totals):
            loss = compute_loss(
                model,
                x=x,
                y=y,
                y_pred=y_pred,
                sample_weight=sample_weight,
                training=self._is_training,
            )
        track_loss(model, loss.detach(), len(flatten(micro_batch)[0]))
        return loss

    def _cut(self, data: Any, num_samples: int) -> Any:
        for begin in range(0, num_samples, self._micro_batches.size):
            yield cut(data, lambda leaf: leaf[begin : begin + self._micro_batches.size])  # noqa: B023

    def _count(self, model: Any, data: Any, num_samples: int) -> list[Any]:
        totals: list[Any] = [0.0] * count_losses(model)
        for micro_batch in self._cut(data, num_samples):
            x, y, sample_weight = unpack(micro_batch)
            with torch.no_grad(), counted(model) as counts, untracked(model):
                y_pred = _call(model, micro_batch, is_training=False)
                compute_loss(
                    model, x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=False
                )
            totals = [total + count for total, count in zip(totals, counts, strict=True)]
        return totals


def update(model: Any) -> None:
    """Updates the weights by their gradients."""
    weights = model.trainable_weights[:]
    if weights:
        with torch.no_grad():
            model.optimizer.apply([weight.value.grad for weight in weights], weights)


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


def _call(model: Any, micro_batch: Any, *, is_training: bool) -> Any:
    x, _, _ = unpack(micro_batch)
    return call_model(model, x, is_training=is_training)


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
