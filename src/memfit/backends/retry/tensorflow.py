"""TensorFlow: the batch is taken outside of the compiled function, one function a phase.

Copies cost nothing: a variable that is read shares its memory until something writes to it.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from memfit.backends.arrays_on_disk import Kept
from memfit.backends.micro_batches import MicroBatches
from memfit.backends.micro_batches.batch_parts import check, flatten
from memfit.backends.micro_batches.tensorflow import Loop, check_model, update
from memfit.backends.micro_batches.tf_rows import is_dense
from memfit.backends.retry import UPDATE_TAKES, Run, can_allocate
from memfit.keras_private.layers import changing_variables
from memfit.keras_private.trainer import accepting_optionals, running_fit_kept


def make_function(model: Any, micro_batches: MicroBatches, run: Run, *, is_training: bool) -> Any:
    """Returns what stands in for Keras's function; it takes an iterator."""
    compiled = _Compiled(model, micro_batches, is_training=is_training)

    def function(iterator: Any) -> Any:
        logs = None
        for _, data in zip(range(model.steps_per_execution), iterator, strict=False):
            attempt = _RetriedStep(compiled, data)
            run(attempt)
            logs = attempt.logs
        if logs is None:
            raise StopIteration
        return logs

    return function


def wait(_variables: list[Any]) -> None:
    """TensorFlow has raised already."""


def release() -> None:
    """TensorFlow gives nothing back."""


class _Compiled:
    """The functions of both phases, made when they are first asked for."""

    def __init__(self, model: Any, micro_batches: MicroBatches, *, is_training: bool) -> None:
        self.model = model
        self.micro_batches = micro_batches
        self.is_training = is_training
        self._learners: dict[int | str, tuple[MicroBatches, Any]] = {}
        self.update = self._compile(lambda gradients: update(model, gradients))

    def learn(self, data: Any, size: int, num_samples: int) -> tuple[Any, list[Any]]:
        """Returns the logs and the gradients of the batch."""
        is_whole = size >= num_samples
        # XLA needs to know the size.
        key = "whole" if is_whole else size if self.model.jit_compile else "cut"
        if key not in self._learners:
            self._learners[key] = self._make_learner(size, is_whole=is_whole)
        micro_batches, learn = self._learners[key]
        if micro_batches.size != size and not is_whole:
            micro_batches.resize(size)
        logs, gradients = learn(data)
        return logs, gradients

    def _make_learner(self, size: int, *, is_whole: bool) -> tuple[MicroBatches, Any]:
        micro_batches = self.micro_batches.of_size(size)
        loop = Loop(self.model, micro_batches, is_training=self.is_training, is_whole=is_whole)
        learn = self._compile(lambda data: loop.learn(self.model, data))
        return micro_batches, accepting_optionals(self.model, learn)

    def _compile(self, function: Any) -> Any:
        if self.model.run_eagerly:
            return function
        return tf.function(
            function,
            reduce_retracing=True,
            jit_compile=self.model.jit_compile,
            autograph=False,
        )


class _RetriedStep:
    def __init__(self, compiled: _Compiled, data: Any) -> None:
        self._compiled = compiled
        self._model = compiled.model
        self._data = data
        self._gradients: list[Any] = []
        self._before: list[tuple[Any, Any]] = []
        self._kept: Kept | None = None
        self._has_begun_update = False
        self.logs: Any = None

    @property
    def num_samples(self) -> int:
        return int(flatten(self._data)[0].shape[0])

    def check_cuttable(self) -> None:
        check(self._data, is_dense)
        check_model(self._model, self._compiled.micro_batches)

    def learn(self, size: int) -> None:
        if not self._before:
            changing = [*changing_variables(self._model), *self._model.metrics_variables]
            self._before = [(one, one.value.read_value()) for one in changing]
        self.logs, self._gradients = self._compiled.learn(self._data, size, self.num_samples)

    def has_room(self) -> bool:
        if not self._gradients:
            return True
        return can_allocate(
            lambda: [
                _allocate(weight.value)
                for weight in self._model.trainable_weights
                for _ in range(UPDATE_TAKES)
            ]
        )

    def keep(self) -> None:
        self._kept = Kept(one.value.numpy() for one in self._updated())

    def update(self) -> None:
        if self._gradients:
            self._has_begun_update = True
            self._compiled.update(self._gradients)
            self._has_begun_update = False
            self._gradients = []

    def undo(self) -> bool:
        self.logs, self._gradients = None, []
        for one, value in self._before:
            one.value.assign(value)
        is_whole = not self._has_begun_update or self._kept is not None
        if self._has_begun_update and self._kept is not None:
            for one, value in zip(self._updated(), self._kept.read(), strict=True):
                one.assign(value)
        self._has_begun_update, self._kept = False, None
        return is_whole

    def pause(self, call: Callable[[Any], object]) -> None:
        with running_fit_kept(self._model):
            call(self._data)

    def _updated(self) -> list[Any]:
        return [*self._model.trainable_weights, *self._model.optimizer.variables]


def _allocate(variable: Any) -> Any:
    """Returns memory for a copy of the variable, without writing to it."""
    with tf.device(variable.device):
        return tf.raw_ops.Empty(shape=variable.shape, dtype=variable.dtype, init=False)
