"""The guard: a batch that runs out of memory is run again in smaller micro-batches."""

import functools
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from memfit.arguments import check_whole_number
from memfit.backends import load
from memfit.backends.first_step import Which
from memfit.backends.first_step.holding import put_below
from memfit.backends.micro_batches import MicroBatches
from memfit.backends.out_of_memory import is_out_of_memory
from memfit.backends.retry import WHOLE, RetriedStep
from memfit.errors import UsageError
from memfit.fitting.levers.change import Change, forget_functions
from memfit.fitting.levers.first_batch_proof import FirstBatchProof, HeldLever
from memfit.fitting.levers.guard_optimizer import guard_build
from memfit.fitting.levers.micro_batches import (
    check_model,
    check_steps,
    check_unguarded,
    check_whole,
    describe_split,
    make_micro_batches,
)
from memfit.fitting.proof.gate import check_allow
from memfit.fitting.proof.proof import Lever
from memfit.heap.release import release
from memfit.messages import say

_KINDS: tuple[Which, ...] = ("train", "test")
_INTACT = "The model is as it was before this batch."
_HALF_UPDATED = (
    "The update of the weights had begun, so the model is not as it was: load it from a file."
)
_UPDATE_FAILS = (
    "there is no memory to update the weights, and smaller micro-batches would not help. "
)
# An update needs the same whatever the micro-batches. It is tried once more, when memory was given
# back.
_MOST_FAILED_UPDATES = 2


def guard(
    model: Any,
    *,
    size: int | None = None,
    batchnorm: str | None = None,
    calm_batches: int = 50,
    allow: Sequence[str] = (),
) -> Change:
    """Makes the model survive a step that runs out of memory.

    When an allocation fails in `fit`, `evaluate`, `train_on_batch` or `test_on_batch`, weights,
    optimizer, metrics and seeds are put back, and the same batch is run again in micro-batches of
    half the size, with the result of the whole batch. After some batches without trouble the
    micro-batches grow back. A line on stderr says so each time. Where the variables of the
    optimizer do not fit, none of them is left behind.

    Before it is run in micro-batches, some rows of that batch are tried at once and in
    micro-batches, as by `memfit.split`. If the training would not be the same, if micro-batches of
    one sample do not help, or if the model cannot be split, the error is raised with a note and the
    model is as it was before the batch.

    Args:
        model: A compiled Keras model that has no `train_step` of its own.
        size: Samples in a micro-batch to begin with, and at most. Whole batches if left out.
        batchnorm: `"micro"` lets BatchNormalization look at one micro-batch at a time; else batches
            of a model with such a layer are not cut.
        calm_batches: After how many batches without trouble micro-batches grow. Each time that this
            fails, twice as many.
        allow: `("unverified",)` runs batches in micro-batches where it cannot be told whether the
            training is the same.

    Returns:
        The change, to print or to undo.

    Raises:
        UsageError: The model cannot be guarded, and why.

    Example:
        ```python
        with memfit.guard(model):
            model.fit(x, y, batch_size=256)
        ```
    """
    check_allow(allow)
    _check_arguments(size, batchnorm)
    check_steps(model)
    check_unguarded(model)
    check_whole(model)
    _check_functions(model)
    proof = FirstBatchProof(model, functools.partial(_describe, model, batchnorm), allow)
    guards = [_Guard(MicroBatchSize(size or WHOLE, calm_batches), proof, which) for which in _KINDS]
    uninstall = _install(model, guards, batchnorm)

    def collect() -> Change:
        for one in guards:
            one.micro_batches.collects = proof.collects
        return Change("", lambda: None)

    held = HeldLever(model, proof, collect, uninstall)
    if size is not None:
        held.hold(*_KINDS)
    return Change(
        "a batch that runs out of memory is run again in smaller micro-batches", held.undo
    )


def _install(model: Any, guards: Sequence["_Guard"], batchnorm: str | None) -> Callable[[], None]:
    """Has the guards make the functions of the model; returns what undoes it."""
    undo_build = guard_build(model.optimizer) if model.optimizer is not None else None
    undo_makers = [
        put_below(
            model,
            f"make_{one.which}_function",
            _make_maker(model, f"{one.which}_function", one, batchnorm),
        )
        for one in guards
    ]
    forget_functions(model)

    def uninstall() -> None:
        if undo_build is not None:
            undo_build()
        for undo in undo_makers:
            undo()
        forget_functions(model)

    return uninstall


def _check_arguments(size: object, batchnorm: object) -> None:
    if size is not None:
        check_whole_number("size", size)
    if batchnorm not in (None, "micro"):
        raise UsageError(
            f'batchnorm must be "micro" or left out. Received: batchnorm={batchnorm!r}. Exact '
            'statistics are for memfit.split(model, size, batchnorm="exact").'
        )


def _describe(model: Any, batchnorm: str | None) -> Lever:
    """Returns micro-batches as a proof sees them; raises if batches cannot be cut."""
    check_model(model)
    return describe_split(model, batchnorm)


def _check_functions(model: Any) -> None:
    import keras

    for which in _KINDS:
        maker = f"make_{which}_function"
        if not getattr(type(model), maker).__module__.startswith("keras."):
            raise UsageError(
                f"{type(model).__name__} has a {maker} of its own, so memfit cannot run its "
                "batches again. Remove it."
            )
    if keras.distribution.distribution() is not None:
        raise UsageError(
            "A keras.distribution is set, and memfit runs batches again on one device only."
        )


def _make_maker(model: Any, name: str, guard: "_Guard", batchnorm: str | None) -> Any:
    """Returns what stands in for Keras's `make_train_function` or `make_test_function`."""
    is_training = name == "train_function"

    def make(force: bool = False) -> Any:
        if getattr(model, name) is None or force:
            if is_training and model.built and not model.optimizer.built:
                # TensorFlow would make its variables inside of the first step.
                model.optimizer.build(model.trainable_variables)
            micro_batches = make_micro_batches(
                model, WHOLE, batchnorm, collects=guard.proof.collects
            )
            guard.micro_batches = micro_batches
            make_function = load("retry").make_function
            setattr(
                model, name, make_function(model, micro_batches, guard.run, is_training=is_training)
            )
        return getattr(model, name)

    return make


class MicroBatchSize:
    """How large a micro-batch may be, as batches go well or not.

    Args:
        largest: The size to begin with.
        calm_batches: After how many good batches it grows; twice as many each time that growing
            was followed by a failure.

    Attributes:
        now: Samples in a micro-batch.
    """

    def __init__(self, largest: int, calm_batches: int) -> None:
        self._largest = largest
        self._calm_batches = calm_batches
        self._num_calm = 0
        self._has_grown = False
        self.now = largest

    def shrink(self, num_samples: int) -> None:
        """After a batch of so many samples has failed."""
        if self._has_grown:
            self._calm_batches *= 2
        self._has_grown = False
        self._num_calm = 0
        self.now = max(1, min(self.now, num_samples) // 2)

    def count(self, num_samples: int) -> bool:
        """Counts a batch that went well; returns whether micro-batches are larger from now on."""
        if self.now == self._largest:
            return False
        self._num_calm += 1
        if self._num_calm < self._calm_batches:
            return False
        self._num_calm = 0
        self._has_grown = True
        self.now = min(self._largest, 2 * self.now)
        if self.now >= num_samples:
            self.now = self._largest
        return True


@dataclass(frozen=True, slots=True)
class _Failure:
    """That memory ran out, and in which phase of the step."""

    error: Exception
    is_in_update: bool


class _Guard:
    """Gets steps through, however often it takes."""

    def __init__(self, size: MicroBatchSize, proof: FirstBatchProof, which: Which) -> None:
        self._size = size
        self.which: Which = which
        self.proof = proof
        self.micro_batches = MicroBatches(WHOLE)

    def run(self, step: RetriedStep) -> None:
        """Runs the step until it succeeds.

        Raises:
            Exception: What the framework raised, with a note, if nothing more can be tried.
        """
        tried: list[int] = []
        num_failed_updates = 0
        while (failure := _try(step, self._size.now)) is not None:
            _clear_frames(failure.error)
            is_intact = step.undo()
            tried.append(min(self._size.now, step.num_samples))
            num_failed_updates += failure.is_in_update
            load("retry").release()
            release()
            if failure.is_in_update:
                end = _UPDATE_FAILS if num_failed_updates == _MOST_FAILED_UPDATES else None
            else:
                end = self._find_end(step, tried)
            note = end if is_intact else ""
            if note is not None:
                failure.error.add_note(f"memfit: {note}{_INTACT if is_intact else _HALF_UPDATED}")
                raise failure.error
            if not failure.is_in_update:
                self._size.shrink(step.num_samples)
            del failure
            say(
                f"out of memory in a batch of {step.num_samples} samples; "
                f"it is run again{self._describe_size(step.num_samples)}"
            )
        if self._size.count(step.num_samples):
            how = self._describe_size(step.num_samples) or " whole"
            say(f"enough memory for a while; batches are run{how}")

    def _find_end(self, step: RetriedStep, tried: Sequence[int]) -> str | None:
        """Returns why nothing smaller can be tried, or `None`."""
        if tried[-1] == 1:
            sizes = ", ".join(str(size) for size in tried)
            return f"the batch was run in micro-batches of {sizes}; not even one sample fits. "
        try:
            step.check_cuttable()
            if not self.proof.holds(self.which):
                step.pause(lambda batch: self.proof.check(batch, self.which))
        except UsageError as error:
            return f"the batch could not be run in micro-batches. {error} "
        self.micro_batches.collects = self.proof.collects
        return None

    def _describe_size(self, num_samples: int) -> str:
        return f" in micro-batches of {self._size.now}" if self._size.now < num_samples else ""


def _try(step: RetriedStep, size: int) -> _Failure | None:
    """Runs the step once; returns how memory ran out, if it did."""
    is_in_update = False
    try:
        step.learn(size)
        is_in_update = True
        if not step.has_room():
            step.keep()
        step.update()
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return _Failure(error, is_in_update)
    return None


def _clear_frames(error: BaseException) -> None:
    """Lets go of the tensors that the traceback holds; it can still be printed."""
    current: BaseException | None = error
    while current is not None:
        traceback.clear_frames(current.__traceback__)
        current = current.__cause__ or current.__context__
