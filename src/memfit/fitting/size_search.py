"""How many samples a micro-batch may have within a budget: which size to try next, which to take.

Sizes are even ones: of all that cut a batch into the same number of micro-batches the smallest, as
it takes the least memory in the same number of runs. It also leaves a last micro-batch that is
about as large as the others; one of another size costs TensorFlow's pool and JAX's compiler more.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from memfit.fitting.attempt import Measurement

# The memory of so few samples is mostly that of the weights; it is a safe beginning.
_FIRST_SHARE = 1 / 32
# Small micro-batches fit into what a pool has taken already, so a line through them is too flat for
# much larger ones; and a pool that has taken too much keeps it.
_MOST_TIMES_LARGER = 2
# Trying again for less than this gains nothing that a user would notice.
_LEAST_GAIN = 0.05
_MOST_TRIALS = 9
# A first guess this close to what was tried may be wrong by more than that.
_CLOSE = 1.5
# Between sizes nearer to each other than this, what a step takes by chance is most.
_TELLING = 2
# Of two sizes timed for two steps each, one is called faster from here on.
_FASTER = 1.2
# A step takes at most and at least so many times what its layers are counted to keep.
_TIMES_COUNTED, _SURELY_KEPT = 3, 0.7


def next_size(
    trials: Sequence[Measurement],
    batch_size: int,
    budget_bytes: int,
    counted_bytes: float | None = None,
    bend: float = 1.0,
) -> int | None:
    """Returns the size to try next, or `None` if there is nothing better to learn.

    The first size is tried twice: what frameworks take for themselves once, they have taken then.
    Sizes grow step by step towards the largest that fits, so that the budget is not passed on the
    way; after one that did not fit they shrink. All are even ones.

    Args:
        trials: What was measured so far. The first has size 0: memory before any step.
        batch_size: Samples in a batch.
        budget_bytes: What a step may need.
        counted_bytes: What layers keep of a sample, if it could be counted.
        bend: How many times steeper than before memory may rise from one size to the next.
    """
    tried = [one for one in trials if one.size]
    if not tried:
        return even_size(max(1, int(batch_size * _FIRST_SHARE)), batch_size)
    if len(tried) >= _MOST_TRIALS:
        return None
    best = best_measurement(tried, budget_bytes)
    too_large = min((one.size for one in tried if not fits(one, budget_bytes)), default=None)
    if best is None:
        too_large = too_large or 1
        return None if too_large == 1 else even_size(max(1, too_large // 4), batch_size)
    if too_large is None and _fits_anyway(trials[0], best, batch_size, budget_bytes):
        return batch_size if batch_size > best.size else None
    if len(tried) == 1:
        return best.size
    limit = _Limit(batch_size, budget_bytes, counted_bytes, bend)
    return _next_larger(trials, best, too_large, limit)


@dataclass(frozen=True, slots=True)
class _Limit:
    """What sizes are held to, as told in `next_size`."""

    batch_size: int
    budget_bytes: int
    counted_bytes: float | None
    bend: float


def _next_larger(
    trials: Sequence[Measurement], best: Measurement, too_large: int | None, limit: _Limit
) -> int | None:
    """The size to try next after one that fits."""
    tried = [one for one in trials if one.size]
    if too_large is not None and tried[-1].size == too_large and not tried[-1].failed:
        return None  # what a process has taken it may keep, so what follows tells little
    batch_size = limit.batch_size
    highest = min(batch_size, (too_large or batch_size + 1) - 1)
    highest = min(highest, best.size * _MOST_TIMES_LARGER)
    if highest < best.size:
        return None  # the same size fitted once and once did not
    size = min(highest, _extrapolate(trials, best, limit))
    if too_large is not None and tried[-1].failed:
        # There is less than the budget, and nothing says how much.
        size = min(size, (best.size + too_large) // 2)
    if len(tried) == 2 and limit.counted_bytes is None and 1 < best.size < highest:
        # To tell what a sample needs from what every step needs.
        size = best.size // 2 if size <= best.size * _CLOSE else size
        return even_size(size, batch_size)
    size = even_size(size, batch_size)
    return size if size >= best.size + _least_gain(best) else None


def even_size(size: int, batch_size: int) -> int:
    """Returns the smallest size that cuts a batch into as many micro-batches as `size` does."""
    number = -(-batch_size // min(size, batch_size))
    return -(-batch_size // number)


def _fits_anyway(idle: Measurement, best: Measurement, batch_size: int, budget_bytes: int) -> bool:
    """Whether the whole batch fits even if all that was needed were needed for each sample."""
    sample_bytes = (best.peak_bytes - idle.peak_bytes) / best.size
    return best.peak_bytes + sample_bytes * (batch_size - best.size) <= budget_bytes


def best_measurement(trials: Sequence[Measurement], budget_bytes: int) -> Measurement | None:
    """Returns the largest size that fits."""
    fitting = [one for one in trials if fits(one, budget_bytes)]
    return max(fitting, key=lambda one: one.size, default=None)


def settle(trials: Sequence[Measurement], batch_size: int, budget_bytes: int) -> int | None:
    """Returns the size to take, `None` if nothing fits.

    The largest that fits; below one that did not, what the line between them says. An even one.
    """
    tried = [one for one in trials if one.size]
    best = best_measurement(tried, budget_bytes)
    if best is None:
        return None
    above = [one for one in tried if one.size > best.size and not one.failed]
    if not above:
        return even_size(best.size, batch_size)
    lowest = min(above, key=lambda one: one.size)
    share = (budget_bytes - best.peak_bytes) / (lowest.peak_bytes - best.peak_bytes)
    return even_size(best.size + int(share * (lowest.size - best.size)), batch_size)


def find_faster(
    trials: Sequence[Measurement], size: int, sample_s: float
) -> tuple[int, float] | None:
    """Returns a smaller size that was faster, and how many times, if that is more than noise.

    Args:
        trials: What was measured.
        size: The size that is taken.
        sample_s: How long it takes for each sample.
    """
    smaller = [(one.sample_s, one.size) for one in trials if one.sample_s and 0 < one.size < size]
    least_s, fastest = min(smaller, default=(sample_s, size))
    ratio = sample_s / least_s if least_s else 0.0
    return (fastest, ratio) if ratio >= _FASTER else None


def estimate_peak(trials: Sequence[Measurement], size: int) -> int | None:
    """Returns about what `size` would need, by the line from the least to the largest.

    `None` if that tells nothing: sizes too near each other, or memory that an earlier one left.
    """
    done = [one for one in trials if one.size and not one.failed]
    if not done:
        return None
    least = min(reversed(done), key=lambda one: one.size)
    largest = max(done, key=lambda one: one.size)
    if largest.size < _TELLING * least.size or largest.peak_bytes <= least.peak_bytes:
        return None
    slope = (largest.peak_bytes - least.peak_bytes) / (largest.size - least.size)
    return round(largest.peak_bytes + slope * (size - largest.size))


def seems_to_fit(trials: Sequence[Measurement], size: int, budget_bytes: int) -> bool:
    """Returns whether a larger size is likely to fit: all tried did, and the line says so."""
    tried = [one for one in trials if one.size]
    slope = _bytes_per_sample(trials)
    if slope is None or not tried or not all(fits(one, budget_bytes) for one in tried):
        return False
    largest = max(tried, key=lambda one: one.size)
    return largest.peak_bytes + slope * (size - largest.size) <= budget_bytes


def fits(trial: Measurement, budget_bytes: int) -> bool:
    """Returns whether it ran, and within this."""
    return not trial.failed and trial.peak_bytes <= budget_bytes


def _extrapolate(trials: Sequence[Measurement], best: Measurement, limit: _Limit) -> int:
    slope = _bytes_per_sample(trials) or 0.0
    counted_bytes = limit.counted_bytes or 0.0
    left_bytes = limit.budget_bytes - best.peak_bytes
    least = 0
    if counted_bytes and len({one.size for one in trials if one.size}) == 1:
        # Of the memory above none at all, most may be the framework's. A little more tells.
        slope = min(slope, _TIMES_COUNTED * counted_bytes)
        little = _least_gain(best)
        least = little if little * counted_bytes <= left_bytes else 0
    slope = max(slope, _SURELY_KEPT * counted_bytes)
    if slope <= 0:
        return best.size * _MOST_TIMES_LARGER
    return best.size + max(least, int(left_bytes / (slope * limit.bend)))


def _least_gain(best: Measurement) -> int:
    return max(1, round(best.size * _LEAST_GAIN))


def _bytes_per_sample(trials: Sequence[Measurement]) -> float | None:
    """The steepest rise between neighbours among the larger half; early ones are mostly noise.

    The first pair begins at no samples, so it counts what every step needs as the samples' need:
    too much, which errs on the safe side until there is a second pair.
    """
    by_size = {one.size: one for one in trials if not one.failed}
    ordered = [by_size[size] for size in sorted(by_size)]
    pairs = list(itertools.pairwise(ordered))
    if not pairs:
        return None
    return max(
        (after.peak_bytes - before.peak_bytes) / (after.size - before.size)
        for before, after in pairs[len(pairs) // 2 :]
    )
