"""Micro-batches on TensorFlow: a `tf.while_loop` that keeps them in order.

An unrolled loop would let TensorFlow run the micro-batches side by side, which saves nothing. The
size of a micro-batch is a variable, so that another size needs no new trace; XLA needs it fixed.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from memfit.backends.micro_batches import MicroBatches
from memfit.backends.micro_batches.batch_parts import cut, flatten, unpack
from memfit.backends.micro_batches.loss_weights import Totals, counted, weighed
from memfit.backends.micro_batches.tf_gathering import Gathering
from memfit.backends.micro_batches.tf_rows import checked
from memfit.errors import UsageError
from memfit.keras_private.layers import changing_variables
from memfit.keras_private.losses import compute_loss, loss_trackers, noted_losses, track_loss
from memfit.keras_private.trainer import build_with, call_model

# Takes a micro-batch, its share of the samples and what earlier micro-batches left; returns what it
# leaves.
_Run = Callable[[Any, Any, list[Any]], list[Any]]


def make_train_step(model: Any, micro_batches: MicroBatches) -> Any:
    """Returns a step that runs the micro-batches of a batch and updates the weights once."""
    return Loop(model, micro_batches, is_training=True).train_step


def make_test_step(model: Any, micro_batches: MicroBatches) -> Any:
    """Returns a step that evaluates the micro-batches of a batch."""
    return Loop(model, micro_batches, is_training=False).run


def check_model(model: Any, micro_batches: MicroBatches) -> None:
    """Raises if the batches of this model cannot be cut on TensorFlow, and says why."""
    if micro_batches.collects and model.jit_compile:
        raise UsageError(
            "Cannot gather predictions under XLA for metrics that need the whole batch. "
            "Received: jit_compile=True and a metric that memfit cannot add up over micro-batches. "
            "Compile with jit_compile=False, or use Keras's own metrics."
        )


def update(model: Any, gradients: Sequence[Any]) -> None:
    """Updates the weights by their gradients."""
    if gradients:
        model.optimizer.apply_gradients(zip(gradients, model.trainable_weights, strict=True))


class Loop:
    """The micro-batches of a batch, one after another.

    Args:
        model: The model that is trained.
        micro_batches: How batches are cut.
        is_training: Whether gradients are computed.
        is_whole: Whether a batch is always one micro-batch; then nothing is cut.
    """

    def __init__(
        self, model: Any, micro_batches: MicroBatches, *, is_training: bool, is_whole: bool = False
    ) -> None:
        self._micro_batches = micro_batches
        self._is_training = is_training
        self._is_whole = is_whole
        self._is_fixed = bool(model.jit_compile)
        self._totals = Totals()
        self._gradients: list[Any] = []
        # Told by the run: which weights have gradients, which single losses are not one number.
        self._has_gradient: list[bool] = []
        self._is_vector: list[bool] = []
        self._size = tf.Variable(micro_batches.size, trainable=False)
        micro_batches.on_resize(self._size.assign)
        if self._is_fixed:
            micro_batches.on_resize(lambda _: _forget_functions(model))
        if not is_whole:
            check_model(model, micro_batches)

    def train_step(self, model: Any, data: Any) -> Any:
        """Stands in for the model's own."""
        logs, gradients = self.learn(model, data)
        update(model, gradients)
        return logs

    def learn(self, model: Any, data: Any) -> tuple[Any, list[Any]]:
        """Returns the logs and the gradients of the batch."""
        logs = self.run(model, data)
        gradients, self._gradients = self._gradients, []
        return logs, gradients

    def run(self, model: Any, data: Any) -> Any:
        """Returns the logs; stands in for the model's own `test_step`."""
        self._micro_batches.renew(is_training=self._is_training)
        if not self._is_whole:
            check_model(model, self._micro_batches)
            data = checked(data)
        build_with(model, data)  # nothing can be made inside a loop
        before = _Before(model)

        def count(number: int) -> list[Any]:
            totals = self._count(model, data, number)
            before.put_back()
            return totals

        return self._totals.run(
            lambda totals: self._attempt(model, data, totals), count, before.put_back
        )

    @property
    def _collects(self) -> bool:
        return self._micro_batches.collects and not self._is_whole

    def _attempt(self, model: Any, data: Any, totals: Sequence[Any] | None) -> Any:
        """Returns the logs; keeps the gradients."""
        weights = model.trainable_weights if self._is_training else []
        averaged = list(self._micro_batches.averaged) if self._is_training else []
        begin = [tf.identity(one.value) for one in averaged]
        trackers = loss_trackers(model)
        gathering = Gathering(model, unpack(data)[0]) if self._collects else None
        self._has_gradient = [False] * len(weights)

        def run_micro_batch(micro_batch: Any, share: Any, carry: list[Any]) -> list[Any]:
            left, arrays = carry[:num_sums], carry[num_sums:]
            gradients, losses, y_pred = self._learn(model, micro_batch, share, totals, weights)
            moved = [share * one.value for one in averaged]
            for one, value in zip(averaged, begin, strict=True):
                one.assign(value)
            new = [*gradients, *losses, *moved]
            added = [
                total + tf.cast(one, total.dtype) for total, one in zip(left, new, strict=True)
            ]
            return [*added, *(gathering.write(arrays, y_pred) if gathering else ())]

        zeros = [tf.zeros(one.shape, one.dtype) for one in weights]
        zeros += [tf.constant(0.0)] * len(trackers)
        zeros += [tf.zeros(one.shape, one.dtype) for one in averaged]
        num_sums = len(zeros)
        arrays = gathering.make_arrays() if gathering else []
        left = self._each(data, run_micro_batch, [*zeros, *arrays])
        self._gradients = [
            one if has else None for one, has in zip(left, self._has_gradient, strict=False)
        ]
        self._track_losses(trackers, left[len(weights) :], data)
        for one, value in zip(averaged, left[num_sums - len(averaged) :], strict=False):
            one.assign(value)
        if gathering is None:
            return model.get_metrics_result()
        x, y, sample_weight = unpack(data)
        y_pred = gathering.join(left[num_sums:])
        return model.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def _track_losses(self, trackers: Sequence[Any], values: Sequence[Any], data: Any) -> None:
        """Tells the losses of the batch, by a size that Keras only knows outside of the loop."""
        samples = flatten(data)[0]
        for tracker, value, is_vector in zip(trackers, values, self._is_vector, strict=False):
            number = tf.shape(samples)[0] if is_vector else samples.shape[0]
            tracker.update_state(value, sample_weight=number)

    def _learn(
        self, model: Any, micro_batch: Any, share: Any, totals: Any, weights: Sequence[Any]
    ) -> tuple[list[Any], list[Any], Any]:
        """Returns the gradients of one micro-batch, weighted, its losses and its predictions."""
        with tf.GradientTape() as tape:
            with weighed(share, totals), noted_losses(model) as losses:
                y_pred, loss = self._compute(model, micro_batch)
            scaled = model.optimizer.scale_loss(loss) if weights else loss
            if not loss.shape.rank:  # the gradient of several numbers is that of their sum
                scaled = scaled * tf.cast(share, loss.dtype)
        track_loss(model, loss, tf.shape(flatten(micro_batch)[0])[0])
        if not self._collects:
            x, y, sample_weight = unpack(micro_batch)
            model.compute_metrics(x, y, y_pred, sample_weight=sample_weight)
        found = tape.gradient(scaled, [one.value for one in weights]) if weights else []
        self._has_gradient = [
            had or one is not None for had, one in zip(self._has_gradient, found, strict=True)
        ]
        gradients = [
            tf.zeros(weight.shape, weight.dtype) if one is None else tf.convert_to_tensor(one)
            for weight, one in zip(weights, found, strict=True)
        ]
        self._is_vector = [bool(one.shape.rank) for one in losses]
        return gradients, [share * tf.reduce_mean(one) for one in losses], y_pred

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

    def _each(self, data: Any, run_micro_batch: _Run, carry: list[Any]) -> list[Any]:
        """Runs the whole micro-batches in a loop, then what is left of the batch."""
        if self._is_whole:
            return run_micro_batch(data, 1.0, carry)
        size = self._micro_batches.size if self._is_fixed else self._size.value()
        num_samples = tf.shape(flatten(data)[0])[0]
        num_whole = num_samples // size

        def run_at(begin: Any, length: Any, carry: list[Any]) -> list[Any]:
            share = tf.cast(length, tf.float32) / tf.cast(num_samples, tf.float32)
            return run_micro_batch(
                cut(data, lambda leaf: leaf[begin : begin + length]), share, carry
            )

        left = tf.while_loop(
            lambda index, *_: index < num_whole,
            lambda index, *carry: (index + 1, *run_at(index * size, size, list(carry))),
            [tf.constant(0), *carry],
            parallel_iterations=1,
        )[1:]
        rest = num_samples - num_whole * size
        return list(
            tf.cond(
                rest > 0,
                lambda: run_at(num_whole * size, rest, list(left)),
                lambda: list(left),
            )
        )

    def _count(self, model: Any, data: Any, number: int) -> list[Any]:
        """Returns what each loss is averaged over, for the whole batch."""

        def run_micro_batch(micro_batch: Any, _: Any, carry: list[Any]) -> list[Any]:
            with counted() as counts, noted_losses(model):
                self._compute(model, micro_batch)
            # If there are others this time, the attempt that follows tells.
            counts += [tf.constant(0.0)] * (number - len(counts))
            return [total + count for total, count in zip(carry, counts, strict=False)]

        return self._each(data, run_micro_batch, [tf.constant(0.0)] * number)


class _Before:
    """What a forward pass changes, as it was before: an attempt may have to begin anew."""

    def __init__(self, model: Any) -> None:
        changing = [*changing_variables(model), *model.metrics_variables]
        self._values = [(one, tf.identity(one.value)) for one in changing]

    def put_back(self) -> None:
        for one, value in self._values:
            one.assign(value)


def _forget_functions(model: Any) -> None:
    model.train_function = model.test_function = None
