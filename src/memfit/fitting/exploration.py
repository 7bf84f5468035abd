"""Sizes tried one after another, from small ones towards the largest that fits."""

from collections.abc import Generator
from dataclasses import dataclass, replace

from memfit.fitting.attempt import Attempt, Inspection, Levers, Measurement
from memfit.fitting.headroom import Headroom
from memfit.fitting.size_search import next_size

# A whole batch that takes longer is tried only in the end; before that, some micro-batches and
# a sample.
_LONG_S = 3.0
_MICRO_BATCHES = 4


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a training before anything is tried.

    Attributes:
        batch_size: Samples in a batch.
        headroom: What may be used.
        place: The device that the budget is about; nothing for the memory of processes.
        bend: How many times steeper than before memory may rise with the size.
        can_reset: Whether a peak can be measured after a higher one.
        why_whole: Why batches cannot be cut; `None` if they can.
        has_fixed_batch: Whether the model takes batches of one size only.
        is_exact: Whether BatchNormalization normalises over the whole batch.
        allows_precision: Whether lower precision is allowed.
        allows_unverified: Whether levers are allowed of which nothing can be proved.
        remembered_size: The size that an earlier training found; `None` if there was none.
    """

    batch_size: int
    headroom: Headroom
    place: str = ""
    bend: float = 1.0
    can_reset: bool = True
    why_whole: str | None = None
    has_fixed_batch: bool = False
    is_exact: bool = False
    allows_precision: bool = False
    allows_unverified: bool = False
    remembered_size: int | None = None


def explore(
    facts: Facts, levers: Levers, idle: Measurement, limit_bytes: int
) -> Generator[Attempt, Measurement, tuple[Measurement, ...]]:
    """Returns what steps of growing size need, the first without a step.

    Args:
        facts: What is known.
        levers: What is installed. Where batches are cut, the size of micro-batches grows;
            otherwise that of the batch, as if there were fewer samples.
        idle: What is taken before any step.
        limit_bytes: No size is tried that seems to need more.
    """
    batch_size = facts.batch_size
    inspection = idle.inspection or Inspection()
    measured = [idle]
    sample_s = _LONG_S if inspection.counted_s is None else inspection.counted_s
    size = next_size(measured, batch_size, limit_bytes)
    if levers.micro_batch_size is None and size == 1:
        size = min(2, batch_size)  # one sample alone does not tell what the next one needs
    if not facts.can_reset:  # a peak would hide those of smaller sizes
        size, sample_s = 1, _LONG_S
    while size is not None:
        one = yield _make_attempt(facts, levers, size, sample_s)
        measured.append(one)
        sample_s = one.sample_s or 0.0
        size = next_size(measured, batch_size, limit_bytes, inspection.counted_bytes, facts.bend)
    return tuple(measured)


def _make_attempt(facts: Facts, levers: Levers, size: int, sample_s: float) -> Attempt:
    if levers.micro_batch_size is None:
        return Attempt(levers, size)
    # What exact normalisation keeps is that of a whole batch.
    is_short = facts.is_exact or sample_s * facts.batch_size < _LONG_S
    num_samples = facts.batch_size if is_short else min(facts.batch_size, _MICRO_BATCHES * size)
    return Attempt(replace(levers, micro_batch_size=size), num_samples)
