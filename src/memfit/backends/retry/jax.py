"""JAX: the first phase gives nothing away, so what it was given is still there if it fails.

The second takes over the memory of the weights and of the optimizer (donation). XLA says what it
needs besides. Each phase is waited for: otherwise another array would report a failure later.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from memfit.backends.arrays_on_disk import Kept
from memfit.backends.first_step.jax import call_between
from memfit.backends.micro_batches import MicroBatches
from memfit.backends.micro_batches.batch_parts import check, flatten
from memfit.backends.micro_batches.jax import Loop, is_dense
from memfit.backends.retry import Run, can_allocate
from memfit.keras_private.layers import changing_variables
from memfit.keras_private.trainer import attach_jax_state, running_fit_kept, take_jax_state

_TRAINING = ("trainable", "non_trainable", "optimizer", "metrics")
_TESTING = ("trainable", "non_trainable", "metrics")
_SCRATCH_BYTES = 2**28


def make_function(model: Any, micro_batches: MicroBatches, run: Run, *, is_training: bool) -> Any:
    """Returns what stands in for Keras's function; it takes the state and an iterator."""
    compiled = _Compiled(model, micro_batches, is_training=is_training)
    kinds = _TRAINING if is_training else _TESTING

    def function(state: Any, iterator: Any) -> tuple[Any, Any]:
        attempt = None
        for _, data in zip(range(model.steps_per_execution), iterator, strict=False):
            attempt = _RetriedStep(compiled, dict(zip(kinds, state, strict=True)), data)
            try:
                run(attempt)
            except BaseException:
                attach_jax_state(model, attempt.state)
                raise
            state = tuple(attempt.state.values())
        if attempt is None:
            raise StopIteration
        return attempt.logs, state

    return function


def wait(variables: list[Any]) -> None:
    """JAX tells that an array could not be made when it is waited for."""
    jax.block_until_ready([one.value for one in variables])


def release() -> None:
    """JAX keeps nothing that could be given back."""


class _Compiled:
    """The functions of both phases, made when they are first asked for."""

    def __init__(self, model: Any, micro_batches: MicroBatches, *, is_training: bool) -> None:
        self.model = model
        self.is_training = is_training
        self._micro_batches = micro_batches
        self._is_compiled = model.jit_compile and not model.run_eagerly
        self._learners: dict[int, Any] = {}
        self._updates: dict[Any, Any] = {}

    def get_learn(self, size: int) -> Any:
        """Returns the first phase, for micro-batches of this size."""
        if size not in self._learners:
            learn = self._make_learn(size)
            self._learners[size] = jax.jit(learn) if self._is_compiled else learn
        return self._learners[size]

    def get_update(self, *args: Any) -> tuple[Any, int]:
        """Returns the second phase for such arguments, and how many bytes it needs."""
        if not self._is_compiled:
            return self._update, 0  # nothing is given away, so nothing can be lost
        key = tuple((one.shape, one.dtype) for one in jax.tree.leaves(args))
        if key not in self._updates:
            function = jax.jit(self._update, donate_argnums=(0, 1)).lower(*args).compile()
            self._updates[key] = function, _count_needed(function)
        found: tuple[Any, int] = self._updates[key]
        return found

    def _make_learn(self, size: int) -> Any:
        model = self.model
        loop = Loop(self._micro_batches.of_size(size))
        kinds = _TRAINING if self.is_training else _TESTING

        def learn(state: dict[str, Any], data: Any) -> tuple[Any, ...]:
            values = tuple(state[kind] for kind in kinds)
            if self.is_training:
                logs, gradients, others, metrics = loop.learn(model, values, data)
            else:
                logs, (_, others, metrics) = loop.test_step(model, values, data)
                gradients = None
            # What is frozen need not be copied.
            changed = {index: others[index] for index in _find_indices(model)}
            return logs, gradients, changed, metrics

        return learn

    def _update(self, optimizer: Any, trainable: Any, gradients: Any) -> tuple[Any, Any]:
        found: tuple[Any, Any] = self.model.optimizer.stateless_apply(
            optimizer, gradients, trainable
        )
        return found


class _RetriedStep:
    def __init__(self, compiled: _Compiled, state: dict[str, Any], data: Any) -> None:
        self._compiled = compiled
        self._data = data
        self._learnt: dict[str, Any] = {}
        self._gradients: Any = None
        self._kept: Kept | None = None
        self.state = state
        self.logs: Any = None

    @property
    def num_samples(self) -> int:
        return int(flatten(self._data)[0].shape[0])

    def check_cuttable(self) -> None:
        check(self._data, is_dense)

    def learn(self, size: int) -> None:
        learn = self._compiled.get_learn(size)
        found = jax.block_until_ready(learn(self.state, self._data))
        self.logs, self._gradients, changed, metrics = found
        others = list(self.state["non_trainable"])
        for index, value in changed.items():
            others[index] = value
        self._learnt = {"non_trainable": others, "metrics": metrics}

    def has_room(self) -> bool:
        if self._gradients is None:
            return True
        _, needed_bytes = self._compiled.get_update(*self._arguments())

        def allocate() -> None:
            jax.block_until_ready(
                [
                    jnp.zeros(min(_SCRATCH_BYTES, needed_bytes - begin), "uint8")
                    for begin in range(0, needed_bytes, _SCRATCH_BYTES)
                ]
            )

        return can_allocate(allocate)

    def keep(self) -> None:
        self._kept = Kept(np.asarray(one) for one in jax.tree.leaves(self._arguments()[:2]))

    def update(self) -> None:
        if self._gradients is not None:
            arguments = self._arguments()
            update, _ = self._compiled.get_update(*arguments)
            trainable, optimizer = jax.block_until_ready(update(*arguments))
            self._learnt |= {"trainable": trainable, "optimizer": optimizer}
        # The order of the state is Keras's.
        self.state = {kind: self._learnt.get(kind, one) for kind, one in self.state.items()}
        self._learnt, self._gradients, self._kept = {}, None, None

    def undo(self) -> bool:
        self.logs, self._gradients, self._learnt = None, None, {}
        if not any(one.is_deleted() for one in jax.tree.leaves(self.state)):
            return True
        if self._kept is None:
            return False
        kept = [jnp.asarray(one) for one in self._kept.read()]
        optimizer, trainable = jax.tree.unflatten(
            jax.tree.structure((self.state["optimizer"], self.state["trainable"])), kept
        )
        self.state = {**self.state, "trainable": trainable, "optimizer": optimizer}
        self._kept = None
        return True

    def pause(self, call: Callable[[Any], object]) -> None:
        given, self.state = [self.state], {}
        kinds = tuple(given[0])

        def call_with_batch() -> None:
            with running_fit_kept(self._compiled.model):
                call(self._data)

        try:
            values = call_between(self._compiled.model, given, call_with_batch)
        except BaseException:
            values = take_jax_state(self._compiled.model, kinds, is_purged=False)
            raise
        finally:
            self.state = dict(zip(kinds, values, strict=True))

    def _arguments(self) -> tuple[Any, Any, Any]:
        return self.state["optimizer"], self.state["trainable"], self._gradients


def _count_needed(function: Any) -> int:
    memory = function.memory_analysis()
    needed_bytes: int = (
        memory.temp_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes
    )
    return needed_bytes


def _find_indices(model: Any) -> list[int]:
    changing = {id(one) for one in changing_variables(model)}
    return [i for i, one in enumerate(model.non_trainable_variables) if id(one) in changing]
