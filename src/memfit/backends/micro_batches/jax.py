"""Micro-batches on JAX: a `jax.lax.scan` over the full ones, then the rest of the batch."""

import types
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from memfit.backends.micro_batches import MicroBatches
from memfit.backends.micro_batches.batch_parts import check, cut, flatten, unpack
from memfit.backends.micro_batches.loss_weights import Totals, counted, weighed
from memfit.backends.xla_order import run_once_there
from memfit.keras_private.layers import get_mask, set_mask
from memfit.keras_private.losses import track_loss

_State = tuple[Any, ...]
# Takes a micro-batch, its share of the samples and what earlier micro-batches left; returns what it
# leaves and its predictions.
_Run = Callable[[Any, float, Any], tuple[Any, Any]]


def make_train_step(model: Any, micro_batches: MicroBatches) -> Any:
    """Returns a step that runs the micro-batches of a batch and updates the weights once."""
    return _fresh(model, micro_batches, "train_step")


def make_test_step(model: Any, micro_batches: MicroBatches) -> Any:
    """Returns a step that evaluates the micro-batches of a batch."""
    return _fresh(model, micro_batches, "test_step")


def _fresh(model: Any, micro_batches: MicroBatches, name: str) -> Any:
    """Returns a step that is a new function after each change of size.

    JAX remembers what it compiled by function and shapes; it knows nothing of the size.
    """
    loop = Loop(micro_batches)

    def step(model: Any, state: _State, data: Any) -> tuple[Any, _State]:
        done: tuple[Any, _State] = getattr(loop, name)(model, state, data)
        return done

    def renew(_: int) -> None:
        if name in model.__dict__:
            setattr(model, name.replace("step", "function"), None)
            new = types.FunctionType(step.__code__, step.__globals__, name, None, step.__closure__)
            model.__dict__[name] = types.MethodType(new, model)

    micro_batches.on_resize(renew)
    return step


def is_dense(leaf: Any) -> bool:
    """Returns whether rows of an array can be taken out of it."""
    return isinstance(leaf, jax.Array | np.ndarray)


class Loop:
    """The micro-batches of a batch, one after another."""

    def __init__(self, micro_batches: MicroBatches) -> None:
        self._micro_batches = micro_batches
        self._totals = {True: Totals(), False: Totals()}

    def train_step(self, model: Any, state: _State, data: Any) -> tuple[Any, _State]:
        """Stands in for the model's own."""
        trainable, _, optimizer, _ = state
        logs, gradients, others, metrics = self.learn(model, state, data)
        trainable, optimizer = model.optimizer.stateless_apply(optimizer, gradients, trainable)
        return logs, (trainable, others, optimizer, metrics)

    def learn(self, model: Any, state: _State, data: Any) -> tuple[Any, Any, Any, Any]:
        """Returns logs, gradients, variables that are not trained, and metrics."""
        self._micro_batches.renew(is_training=True)
        return self._totals[True].run(
            lambda totals: self._learn(model, state, data, totals),
            lambda number: self._count(model, state, data, number),
        )

    def _learn(self, model: Any, state: _State, data: Any, totals: Any) -> tuple[Any, ...]:
        trainable, others, _, metrics = state
        averaged = self._averaged_indices(model)
        begin = [others[index] for index in averaged]

        def run_micro_batch(micro_batch: Any, share: float, carry: Any) -> tuple[Any, Any]:
            gradients, moved, others, metrics = carry

            def learn(trainable: Any) -> tuple[Any, Any]:
                with weighed(share, totals):
                    now = trainable, others, state[2], metrics
                    loss, aux = _compute(model, now, micro_batch)
                return loss * share, aux

            (_, aux), found = jax.value_and_grad(learn, has_aux=True)(trainable)
            loss, y_pred, others, metrics = aux
            gradients = jax.tree.map(jnp.add, gradients, found)
            moved = [
                total + share * others[index] for total, index in zip(moved, averaged, strict=True)
            ]
            metrics = self._update(model, metrics, loss, micro_batch, y_pred)
            carry = gradients, moved, _with_values(others, averaged, begin), metrics
            return carry, self._keep(y_pred)

        zeros = jax.tree.map(jnp.zeros_like, (list(trainable), begin))
        carry, kept = self._each(data, run_micro_batch, (*zeros, list(others), list(metrics)))
        gradients, moved, others, metrics = carry
        logs, metrics = self._finish(model, metrics, data, kept)
        return logs, gradients, _with_values(others, averaged, moved), metrics

    def test_step(self, model: Any, state: _State, data: Any) -> tuple[Any, _State]:
        """Stands in for the model's own."""
        self._micro_batches.renew(is_training=False)
        return self._totals[False].run(
            lambda totals: self._test(model, state, data, totals),
            lambda number: self._count(model, state, data, number),
        )

    def _test(self, model: Any, state: _State, data: Any, totals: Any) -> tuple[Any, _State]:
        trainable, others, metrics = state

        def run_micro_batch(micro_batch: Any, share: float, carry: Any) -> tuple[Any, Any]:
            with weighed(share, totals):
                _, aux = _compute(model, (trainable, *carry), micro_batch)
            loss, y_pred, others, metrics = aux
            metrics = self._update(model, metrics, loss, micro_batch, y_pred)
            return (list(others), metrics), self._keep(y_pred)

        carry, kept = self._each(data, run_micro_batch, (list(others), list(metrics)))
        others, metrics = carry
        logs, metrics = self._finish(model, metrics, data, kept)
        return logs, (trainable, others, metrics)

    def _each(self, data: Any, run_micro_batch: _Run, carry: Any) -> tuple[Any, Any]:
        """Returns what the last micro-batch left and all predictions, in the batch's order."""
        size = self._micro_batches.size
        num_samples = flatten(data)[0].shape[0]
        if num_samples <= size:
            return run_micro_batch(data, 1.0, carry)
        check(data, is_dense)
        data = cut(data, jnp.asarray)
        num_whole, rest = divmod(num_samples, size)
        predictions = []

        def run_at(carry: Any, index: Any) -> tuple[Any, Any]:
            micro_batch = cut(
                data, lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, index * size, size)
            )
            return run_micro_batch(micro_batch, size / num_samples, carry)

        carry, stacked = jax.lax.scan(run_at, carry, jnp.arange(num_whole))
        predictions.append(jax.tree.map(lambda one: one.reshape(-1, *one.shape[2:]), stacked))
        if rest:

            def run_rest(carry: Any) -> tuple[Any, Any]:
                tail = cut(data, lambda leaf: leaf[num_whole * size :])
                return run_micro_batch(tail, rest / num_samples, carry)

            # XLA would else run the rest beside the others.
            carry, y_pred = run_once_there(run_rest, carry, carry)
            predictions.append(y_pred)
        return carry, jax.tree.map(lambda *parts: jnp.concatenate(parts), *predictions)

    def _update(self, model: Any, metrics: Any, loss: Any, micro_batch: Any, y_pred: Any) -> Any:
        """Returns the metrics after one micro-batch; without predictions only the loss is told."""
        x, y, sample_weight = unpack(micro_batch)

        def update() -> None:
            track_loss(model, loss, flatten(micro_batch)[0].shape[0])
            if not self._micro_batches.collects:
                model.compute_metrics(x, y, y_pred, sample_weight)

        return _with_metrics(model, metrics, update)[1]

    def _keep(self, y_pred: Any) -> Any:
        """Returns what is kept of a micro-batch: predictions and their masks, where asked for."""
        if not self._micro_batches.collects:
            return None
        return y_pred, [get_mask(one) for one in flatten(y_pred)]

    def _finish(self, model: Any, metrics: Any, data: Any, kept: Any) -> tuple[Any, Any]:
        """Returns the logs of the batch and the metrics."""
        if not self._micro_batches.collects:
            return _with_metrics(model, metrics, model.get_metrics_result)
        x, y, sample_weight = unpack(data)
        y_pred, masks = kept
        for one, mask in zip(flatten(y_pred), masks, strict=True):
            set_mask(one, mask)
        return _with_metrics(
            model, metrics, lambda: model.compute_metrics(x, y, y_pred, sample_weight)
        )

    def _count(self, model: Any, state: _State, data: Any, number: int) -> list[Any]:
        """Returns what each loss is averaged over, for the whole batch."""

        def run_micro_batch(micro_batch: Any, _: float, carry: Any) -> tuple[Any, Any]:
            totals, others = carry
            with counted() as counts:
                _, aux = _compute(model, (state[0], others, *state[2:]), micro_batch)
            # If there are others this time, the attempt that follows tells.
            pairs = zip(totals, counts, strict=False)
            return ([total + count for total, count in pairs], list(aux[2])), None

        zeros = [jnp.zeros(())] * number
        return list(self._each(data, run_micro_batch, (zeros, list(state[1])))[0][0])

    def _averaged_indices(self, model: Any) -> list[int]:
        wanted = {id(one) for one in self._micro_batches.averaged}
        return [i for i, one in enumerate(model.non_trainable_variables) if id(one) in wanted]


def _compute(model: Any, state: _State, micro_batch: Any) -> tuple[Any, Any]:
    """Returns the scaled loss, and loss, predictions, others and metrics.

    A state that trains has the variables of the optimizer in its third place.
    """
    x, y, sample_weight = unpack(micro_batch)
    trainable, others, *optimizer, metrics = state
    learning = {"optimizer_variables": optimizer[0]} if optimizer else {}
    loss, aux = model.compute_loss_and_updates(
        trainable, others, metrics, x, y, sample_weight, training=bool(optimizer), **learning
    )
    return loss, aux


def _with_metrics(model: Any, metrics: Any, run: Callable[[], Any]) -> tuple[Any, list[Any]]:
    """Runs with the metrics at these values; returns what it returned and the new values."""
    import keras

    mapping = list(zip(model.metrics_variables, metrics, strict=True))
    with keras.StatelessScope(state_mapping=mapping) as scope:
        result = run()
    return result, [scope.get_current_value(one) for one, _ in mapping]


def _with_values(variables: Sequence[Any], indices: Sequence[int], values: Sequence[Any]) -> Any:
    """Returns the variables with other values at some indices."""
    changed = list(variables)
    for index, value in zip(indices, values, strict=True):
        changed[index] = value
    return changed
