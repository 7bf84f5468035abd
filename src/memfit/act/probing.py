"""Tries steps of growing size and measures their memory; the model is afterwards as before."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memfit.act.first_batch import Batch, count_samples, take
from memfit.backends.exhausted import is_out_of_memory
from memfit.measure.allocator import trim
from memfit.measure.peak import Peak, read_tree_bytes
from memfit.plan.pieces import Trial, next_size

# Two pieces and one sample: gradients are added up, and the last piece is short.
PIECES_TRIED = 2


@dataclass(frozen=True, slots=True)
class Measured:
    """What trials found.

    Attributes:
        trials: Each size and its peak, the first without a step.
        step_s: How long the last one took, by sample.
    """

    trials: tuple[Trial, ...]
    seconds: dict[int, float]


def try_sizes(
    model: Any,
    batch: Batch,
    budget_bytes: int,
    resize: Callable[[int], None] | None,
    *,
    pieces_tried: int | None = PIECES_TRIED,
) -> Measured:
    """Returns what steps of growing size need.

    Args:
        model: A built model. Its variables change; the caller puts them back.
        batch: A whole batch.
        budget_bytes: No size is tried that seems to need more.
        resize: Sets the size of a piece; without it, smaller batches are tried.
        pieces_tried: Pieces in a batch that is tried; all of them if `None`.
    """
    batch_size = count_samples(batch)
    trials = [Trial(0, read_tree_bytes())]
    seconds: dict[int, float] = {}
    while (size := next_size(trials, batch_size, budget_bytes)) is not None:
        number = size
        if resize is not None:
            resize(size)
            number = batch_size if pieces_tried is None else pieces_tried * size + 1
            number = min(batch_size, number)
        trial, seconds[size] = try_step(model, take(batch, number), size)
        trials.append(trial)
    return Measured(tuple(trials), seconds)


def try_step(model: Any, batch: Batch, size: int) -> tuple[Trial, float]:
    """Returns what one step on this batch needs, and how long it takes once it is compiled."""
    x, y, sample_weight = batch
    try:
        with Peak() as peak:
            model.train_on_batch(x, y, sample_weight=sample_weight)
            begun_s = time.perf_counter()
            model.train_on_batch(x, y, sample_weight=sample_weight)
            taken_s = time.perf_counter() - begun_s
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        failed = True
    else:
        failed = False
    if failed:  # the traceback, which held the tensors, is gone here
        trim()
        return Trial(size, peak.read(), failed=True), 0.0
    return Trial(size, peak.read()), taken_s
