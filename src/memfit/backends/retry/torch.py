"""torch: gradients stay in `.grad` between the phases; Keras has taken the batch already."""

from collections.abc import Callable
from typing import Any

import torch

from memfit.backends.arrays_on_disk import Kept
from memfit.backends.first_step.torch import modules_kept
from memfit.backends.micro_batches import MicroBatches
from memfit.backends.micro_batches.batch_parts import check, flatten
from memfit.backends.micro_batches.torch import Loop, is_dense, update
from memfit.backends.retry import UPDATE_TAKES, Run, can_allocate
from memfit.keras_private.layers import changing_variables
from memfit.keras_private.trainer import is_torch_compiled, running_fit_kept


def make_function(model: Any, micro_batches: MicroBatches, run: Run, *, is_training: bool) -> Any:
    """Returns what stands in for Keras's function; it takes a list of one batch."""
    loop = Loop(micro_batches, is_training=is_training)
    step = loop.learn if is_training else loop.test_step
    if is_torch_compiled(model):
        step = torch.compile(step)

    def function(data: Any) -> Any:
        attempt = _RetriedStep(model, micro_batches, step, data[0], is_training=is_training)
        run(attempt)
        return attempt.logs

    return function


def wait(_variables: list[Any]) -> None:
    """Torch has raised already."""


def release() -> None:
    """Gives back what torch keeps of a GPU's memory."""
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


class _RetriedStep:
    def __init__(
        self, model: Any, micro_batches: MicroBatches, step: Any, data: Any, *, is_training: bool
    ) -> None:
        self._model = model
        self._micro_batches = micro_batches
        self._step = step
        self._data = data
        self._is_training = is_training
        self._before: list[tuple[Any, Any]] = []
        self._random = _read_random()
        self._kept: Kept | None = None
        self._has_begun_update = False
        self.logs: Any = None

    @property
    def num_samples(self) -> int:
        return len(flatten(self._data)[0])

    def check_cuttable(self) -> None:
        check(self._data, is_dense)

    def learn(self, size: int) -> None:
        if not self._before:
            changing = [*changing_variables(self._model), *self._model.metrics_variables]
            self._before = [(one, one.value.detach().clone()) for one in changing]
        self._micro_batches.resize(size)
        self.logs = self._step(self._model, self._data)

    def has_room(self) -> bool:
        if not self._is_training:
            return True
        return can_allocate(
            lambda: [
                torch.empty((UPDATE_TAKES, *one.shape), dtype=one.dtype, device=one.device)
                for one in (weight.value for weight in self._model.trainable_weights)
            ]
        )

    def keep(self) -> None:
        self._kept = Kept(_as_bytes(one).cpu().numpy() for one in self._updated())

    def update(self) -> None:
        if self._is_training:
            self._has_begun_update = True
            update(self._model)
            self._has_begun_update = False

    def undo(self) -> bool:
        self.logs = None
        if self._is_training:
            self._model.zero_grad()
        for one, value in self._before:
            one.assign(value)
        for write, state in self._random:
            write(state)
        is_whole = not self._has_begun_update or self._kept is not None
        if self._has_begun_update and self._kept is not None:
            for one, value in zip(self._updated(), self._kept.read(), strict=True):
                _as_bytes(one).copy_(torch.from_numpy(value))
        self._has_begun_update, self._kept = False, None
        return is_whole

    def pause(self, call: Callable[[Any], object]) -> None:
        with modules_kept(self._model), running_fit_kept(self._model):
            call(self._data)

    def _updated(self) -> list[Any]:
        return [*self._model.trainable_weights, *self._model.optimizer.variables]


def _read_random() -> list[tuple[Any, Any]]:
    """Returns the state of torch's own generators, which a Dropout without a seed draws from."""
    found = [(torch.set_rng_state, torch.get_rng_state())]
    if torch.cuda.is_initialized():
        found.append((torch.cuda.set_rng_state, torch.cuda.get_rng_state()))
    return found


def _as_bytes(variable: Any) -> Any:
    """Returns the memory of a variable, whose kind NumPy may not know."""
    return variable.value.detach().reshape(-1).view(torch.uint8)
