"""The figures of a refusal: what would do, by what was measured of steps that are too large."""

from collections.abc import Sequence

from memfit.fitting.attempt import Measurement
from memfit.fitting.exploration import Facts
from memfit.fitting.plan import Refusal
from memfit.fitting.size_search import estimate_peak

# What one sample leaves alone tells nothing of how samples bear on each other.
FEWEST_PROVED = 2
# What was measured now may be more the next time.
_ONCE_MORE = 1.03


def make_refusal(
    facts: Facts, first: Sequence[Measurement], verified: Sequence[Measurement]
) -> Refusal:
    """Returns why a budget cannot be kept, and what would do.

    Args:
        facts: What is known of the training; whether batches have to stay whole, as is known now.
        first: What was measured of growing sizes, before any of them had taken much.
        verified: What was measured of whole batches.
    """
    headroom = facts.headroom
    whole_bytes = estimate_peak(first, facts.batch_size)
    smallest = facts.batch_size if facts.why_whole is not None else FEWEST_PROVED
    least = min((one.peak_bytes for one in verified or first if one.size), default=None)
    needed_bytes = estimate_peak(first, smallest) or least or headroom.idle_bytes
    fixed_bytes = estimate_peak(first, 0)

    def find_budget(peak_bytes: int) -> int:
        return round(_ONCE_MORE * headroom.smallest_budget(peak_bytes))

    return Refusal(
        budget_bytes=headroom.budget_bytes,
        idle_bytes=headroom.idle_bytes,
        batch_size=facts.batch_size,
        least_bytes=find_budget(needed_bytes),
        whole_bytes=None if whole_bytes is None else find_budget(whole_bytes),
        fixed_bytes=None if fixed_bytes is None else fixed_bytes - headroom.idle_bytes,
        why_whole=facts.why_whole,
    )
