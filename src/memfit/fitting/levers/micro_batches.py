"""Batches in micro-batches: one batch, one update of the weights, the memory of a micro-batch."""

import functools
import types
from collections.abc import Sequence
from typing import Any

from memfit.arguments import check_whole_number
from memfit.backends import load
from memfit.backends.micro_batches import MicroBatches
from memfit.errors import UsageError
from memfit.fitting.graph.batchnorm import explain_batchnorm, find_batchnorm, moving_statistics
from memfit.fitting.levers.batchnorm_exact import normalise_exactly
from memfit.fitting.levers.change import Change, forget_functions
from memfit.fitting.levers.cuttable_models import (
    check_model,
    check_unguarded,
    check_whole,
    split_models,
)
from memfit.fitting.levers.first_batch_proof import FirstBatchProof, HeldLever
from memfit.fitting.proof.gate import check_allow
from memfit.fitting.proof.proof import Lever

_STEPS = ("train_step", "test_step")
_BATCHNORM = ("exact", "micro")


def split(
    model: Any, size: int, *, batchnorm: str | None = None, allow: Sequence[str] = ()
) -> Change:
    """Makes the model run every batch in micro-batches, with the result of the whole batch.

    The micro-batches run one after another inside the training step. Their gradients, weighted by
    their samples, make one update of the weights, so schedules, averages and loss scaling count
    batches as before; losses and metrics are those of the whole batch. `fit`, `evaluate`,
    `train_on_batch` and `test_on_batch` use it. Layers that draw random numbers, such as Dropout,
    draw different ones than for the whole batch.

    At the first batch, before its update, some of its rows are tried at once and in micro-batches.
    Where gradients, states, losses and metrics are not the same, the change is undone and a
    `UsageError` names what couples the samples. The model is then as it was.

    Args:
        model: A compiled Keras model that has no `train_step` of its own.
        size: Samples in a micro-batch.
        batchnorm: What a BatchNormalization layer, which looks at the whole batch, may do.
            `"exact"`: normalise over the whole batch, with the result of the whole batch. It
            takes one more forward pass, or more where micro-batches are small, and the input of
            each such layer stays in memory for the whole batch, as do the model's outputs. For
            Functional and Sequential models.
            `"micro"`: normalise each micro-batch by itself; its moving statistics move once a
            batch, by the mean over the micro-batches. Results differ from those of the whole batch.
            Without either a model with such a layer is refused.
        allow: `("unverified",)` trains where it cannot be told whether the training is the same,
            such as with random numbers that Keras does not control. What is known to be another
            training is refused all the same.

    Returns:
        The change, to print or to undo.

    Raises:
        UsageError: The model cannot be split, and why; some of it is known in `fit` only.

    Example:
        ```python
        model.compile("adam", "mse")
        change = memfit.split(model, 32)
        model.fit(x, y, batch_size=256)
        change.undo()
        ```
    """
    size = check_whole_number("size", size)
    check_allow(allow)
    check_batchnorm(batchnorm)
    check_whole(model)
    check_model(model)
    check_unguarded(model)
    describe_split(model, batchnorm)
    proof = FirstBatchProof(model, functools.partial(describe_split, model, batchnorm), allow, size)

    def install_cut() -> Change:
        micro_batches = make_micro_batches(model, size, batchnorm, collects=proof.collects)
        return install(model, micro_batches, batchnorm)

    with install_cut() as tried:  # what the model is not made for shows here
        text = str(tried)
    held = HeldLever(model, proof, install_cut, lambda: split_models.discard(model))
    held.hold("train", "test")
    split_models.add(model)
    return Change(text, held.undo)


def make_micro_batches(
    model: Any, size: int, batchnorm: str | None, *, collects: bool = False
) -> MicroBatches:
    """Returns how batches of this model are cut.

    Args:
        model: A compiled model.
        size: Samples in a micro-batch.
        batchnorm: What BatchNormalization may do.
        collects: Whether metrics see the predictions of the whole batch, as a proof tells.
    """

    def look_again(micro_batches: MicroBatches) -> None:
        micro_batches.averaged = moving_statistics(model) if batchnorm == "micro" else []

    micro_batches = MicroBatches(size, collects=collects, look_again=look_again)
    look_again(micro_batches)
    return micro_batches


def describe_cut(model: Any, batchnorm: str | None) -> Lever:
    """Returns micro-batches as a proof sees them, for a model that may have changed meanwhile.

    Raises:
        UsageError: Batches of this model cannot be cut, and why.
    """
    check_model(model)
    return describe_split(model, batchnorm)


def describe_split(model: Any, batchnorm: str | None) -> Lever:
    """Returns micro-batches as a proof sees them: layers that may train otherwise are held still.

    Raises:
        UsageError: The model normalises over the batch, and nobody says how it may.
    """
    normalising = find_batchnorm(model)
    if normalising and batchnorm is None:
        raise UsageError(explain_batchnorm(normalising))
    is_exact = batchnorm == "exact" and bool(normalising)

    def cut(size: int, collects: bool) -> Change:
        micro_batches = make_micro_batches(model, size, batchnorm, collects=collects)
        return install(model, micro_batches, batchnorm)

    return Lever(
        cut,
        is_plain=not is_exact,
        frozen=normalising if batchnorm == "micro" else (),
        name=f"micro-batches, batchnorm={batchnorm if normalising else None}",
    )


def install(model: Any, micro_batches: MicroBatches, batchnorm: str | None) -> Change:
    """Puts steps that run in micro-batches into the model; exact ones are inside of its `call`."""
    is_exact = batchnorm == "exact" and bool(find_batchnorm(model))
    exact = normalise_exactly(model, micro_batches) if is_exact else None
    if exact is None and batchnorm != "micro":
        micro_batches.check_training = lambda: _check_still_frozen(model, batchnorm)
    steps = load("micro_batches")
    makers = {"train_step": steps.make_train_step, "test_step": steps.make_test_step}
    before = {name: model.__dict__[name] for name in _STEPS if name in model.__dict__}
    for name, make in makers.items():
        if exact is None or name != "train_step":
            object.__setattr__(model, name, types.MethodType(make(model, micro_batches), model))
    forget_functions(model)

    def undo() -> None:
        if exact is not None:
            exact.undo()
        for name in _STEPS:
            model.__dict__.pop(name, None)
        model.__dict__.update(before)
        forget_functions(model)

    size = micro_batches.size
    text = f"batches run in micro-batches of {size} samples, with one update for each batch"
    if micro_batches.averaged:
        text += (
            "; BatchNormalization looks at one micro-batch at a time, so results differ a little"
        )
    if exact is not None:
        text += f"; {exact}"
    return Change(text, undo)


def _check_still_frozen(model: Any, batchnorm: str | None) -> None:
    """Raises if the model normalises over the whole batch now, and did not when it was split."""
    thawed = find_batchnorm(model)
    if thawed and batchnorm is None:
        raise UsageError(explain_batchnorm(thawed))
    if thawed:
        raise UsageError(
            f"The layer {thawed[0].name!r} was frozen when the model was split, and trains now. "
            'Undo the split and call memfit.split(model, size, batchnorm="exact") again.'
        )


def check_batchnorm(batchnorm: object) -> None:
    """Raises if this is no way to treat BatchNormalization."""
    if batchnorm not in (None, *_BATCHNORM):
        raise UsageError(
            f'batchnorm must be "exact", "micro" or left out. Received: batchnorm={batchnorm!r}.'
        )
