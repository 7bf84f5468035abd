"""The one line that is shown while a script runs."""

from dataclasses import dataclass

from memfit.diagnose.growth.growth import Growth
from memfit.diagnose.killed import format_rate
from memfit.measure.limits import Limit
from memfit.record.samples import StepProgress
from memfit.units import format_size


@dataclass(frozen=True, slots=True)
class LiveStatus:
    """What is known now.

    Attributes:
        rss_bytes: RSS of the process tree.
        peak_bytes: The most it has been.
        limit: The limit it would meet first.
        growth: Steady growth so far.
        progress: How far the training is.
    """

    rss_bytes: int
    peak_bytes: int
    limit: Limit | None = None
    growth: Growth | None = None
    progress: StepProgress | None = None


def format_status(status: LiveStatus, width: int) -> str:
    """Returns the status in one line of at most `width` characters; the least useful go first."""
    parts = [f"memfit {format_size(status.rss_bytes)}", f"peak {format_size(status.peak_bytes)}"]
    if status.limit is not None:
        parts.append(f"limit {format_size(status.limit.limit_bytes)}")
    if status.growth is not None:
        parts.append(f"+{format_rate(status.growth).partition(' (')[0]}")
    if status.progress is not None:
        parts += _format_progress(status.progress)
    while len(parts) > 1 and len(" · ".join(parts)) > width:
        parts.pop()
    return " · ".join(parts)[:width]


def _format_progress(progress: StepProgress) -> list[str]:
    if progress.epoch is None:
        steps = getattr(progress, progress.counter)
        return [f"step {steps:,}"] if steps else []
    parts = [f"epoch {_of(progress.epoch, progress.epochs)}"]
    if progress.step:
        parts.append(f"step {_of(progress.step, progress.steps)}")
    return parts


def _of(number: int, total: int | None) -> str:
    return f"{number}/{total}" if total else str(number)
