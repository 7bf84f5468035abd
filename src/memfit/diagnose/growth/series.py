"""Memory of the whole training over time, from inside and outside readings together."""

from dataclasses import dataclass

from memfit.record.evidence import RemedyTrial
from memfit.record.recording import Recording
from memfit.record.samples import Sample, StepProgress


@dataclass(frozen=True, slots=True)
class Point:
    """The training at one moment.

    Attributes:
        t_s: When.
        rss_bytes: RSS of the script's process and all below it.
        held_bytes: The part of that which the kernel cannot reclaim, with what was swapped out.
        used_bytes: `held_bytes` without what malloc keeps for later; `None` where malloc was
            not read at that very moment.
        progress: How far the training was.
        at: The line of the user's code that ran, where known.
        is_importing: Whether that line was waiting for an import.
    """

    t_s: float
    rss_bytes: int
    held_bytes: int
    used_bytes: int | None = None
    progress: StepProgress | None = None
    at: str | None = None
    is_importing: bool = False


def total_series(recording: Recording) -> tuple[Point, ...]:
    """Returns the memory of the script's process and all below it, in the order of time.

    Inside readings are exact at epoch ends but know one process; to them the children are
    added as last seen from outside.
    """
    inside_counts = _is_same_process(recording)
    merged = sorted((*recording.outside, *recording.inside), key=lambda sample: sample.t_s)
    points: list[Point] = []
    watcher: Sample | None = None
    progress: StepProgress | None = None
    for sample in merged:
        progress = sample.progress or progress
        if sample.children is not None:
            watcher = sample
        elif not inside_counts:
            continue
        points.append(_point(sample, watcher, progress))
    return tuple(points)


def first_trim_t_s(recording: Recording) -> float | None:
    """Returns when memfit's own `malloc_trim` lowered the series; `None` if it never ran."""
    trials = [one for one in recording.of(RemedyTrial) if one.remedy == "trim"]
    return trials[0].t_s - trials[0].cost_s if trials else None


def _is_same_process(recording: Recording) -> bool:
    """Whether the agent sits in the very process that the supervisor started."""
    if not recording.outside or not recording.inside:
        return True
    return recording.outside[0].pid == recording.inside[0].pid


def _point(sample: Sample, watcher: Sample | None, progress: StepProgress | None) -> Point:
    children_held_bytes = watcher.children_held_bytes if watcher else 0
    held_bytes = sample.process.held_bytes + children_held_bytes
    allocator = sample.allocator
    return Point(
        t_s=sample.t_s,
        rss_bytes=sample.process.rss_bytes + (watcher.children_rss_bytes if watcher else 0),
        held_bytes=held_bytes,
        used_bytes=held_bytes - allocator.free_bytes if allocator else None,
        progress=progress,
        at=sample.at,
        is_importing=sample.is_importing,
    )
