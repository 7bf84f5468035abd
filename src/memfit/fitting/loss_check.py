"""A loss of a user's own, such as a contrastive one, may compare the samples of a batch."""

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any

from memfit.fitting.first_batch import Batch, count_samples, take
from memfit.fitting.levers.change import forget_functions
from memfit.fitting.levers.micro_batches import install, make_micro_batches
from memfit.keras_private.losses import given_losses

# As many as tell it, and as few as take no memory.
_NUM_SAMPLES = 4
# Sums in another order differ by less, in half precision too.
_TOLERANCE = 5e-3


def explain_coupling(model: Any, batch: Batch) -> str | None:
    """Returns why the loss of micro-batches is not that of the batch, or `None` if it is.

    Losses of Keras are known to be made of the losses of samples. Any other is computed for a few
    samples, at once and in two halves.
    """
    few = take(batch, _NUM_SAMPLES)
    if not _has_own_loss(model) or count_samples(few) < 2:
        return None
    with _running_eagerly(model):
        whole = _compute_loss(model, few)
        micro_batches = make_micro_batches(model, -(-count_samples(few) // 2), None)
        with install(model, micro_batches, None):
            halves = _compute_loss(model, few)
    if abs(whole - halves) <= _TOLERANCE * max(abs(whole), abs(halves)):
        return None
    return (
        f"The loss of {count_samples(few)} samples is {whole:.4g}, and {halves:.4g} made of "
        "two halves: it compares samples with each other, so a batch in micro-batches would not "
        "train the same."
    )


def _has_own_loss(model: Any) -> bool:
    losses = given_losses(model)
    functions = [getattr(one, "fn", one) for one in losses if not isinstance(one, str | None)]
    return not all(_is_of_keras(one) for one in [*functions, type(model).compute_loss])


def _is_of_keras(thing: Any) -> bool:
    kind = thing if inspect.isroutine(thing) else type(thing)
    return str(getattr(kind, "__module__", "")).split(".")[0] == "keras"


@contextlib.contextmanager
def _running_eagerly(model: Any) -> Iterator[None]:
    """Compiles nothing."""
    was_eager = model.run_eagerly
    model.run_eagerly = True
    forget_functions(model)
    try:
        yield
    finally:
        model.run_eagerly = was_eager
        forget_functions(model)


def _compute_loss(model: Any, batch: Batch) -> float:
    x, y, sample_weight = batch
    model.reset_metrics()
    logs = model.test_on_batch(x, y, sample_weight=sample_weight, return_dict=True)
    return float(logs["loss"])
