"""The guard: a batch that runs out of memory is run again in smaller micro-batches."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from memfit.arguments import check_whole_number
from memfit.backends import load
from memfit.backends.first_step.held_function import put_below
from memfit.backends.retry import WHOLE
from memfit.errors import UsageError
from memfit.fitting.levers.change import Change, forget_functions
from memfit.fitting.levers.cuttable_models import (
    check_steps,
    check_unguarded,
    check_whole,
)
from memfit.fitting.levers.first_batch_proof import FirstBatchProof, HeldLever
from memfit.fitting.levers.guard_optimizer import guard_build
from memfit.fitting.levers.guarded_steps import KINDS, GuardedSteps, MicroBatchSize
from memfit.fitting.levers.micro_batches import describe_cut, make_micro_batches
from memfit.fitting.proof.gate import check_allow


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
    check_whole(model)
    check_steps(model)
    check_unguarded(model)
    _check_functions(model)
    proof = FirstBatchProof(model, functools.partial(describe_cut, model, batchnorm), allow)
    guards = [
        GuardedSteps(MicroBatchSize(size or WHOLE, calm_batches), proof, which) for which in KINDS
    ]
    uninstall = _install(model, guards, batchnorm)

    def collect() -> Change:
        for one in guards:
            one.micro_batches.collects = proof.collects
        return Change("", lambda: None)

    held = HeldLever(model, proof, collect, uninstall)
    if size is not None:
        held.hold(*KINDS)
    return Change(
        "a batch that runs out of memory is run again in smaller micro-batches", held.undo
    )


def _install(
    model: Any, guards: Sequence[GuardedSteps], batchnorm: str | None
) -> Callable[[], None]:
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


def _check_functions(model: Any) -> None:
    import keras

    for which in KINDS:
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


def _make_maker(model: Any, name: str, guard: GuardedSteps, batchnorm: str | None) -> Any:
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
