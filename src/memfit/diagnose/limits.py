"""How close a run came to its limit."""

from collections.abc import Sequence

from memfit.diagnose.causes.finding import Finding
from memfit.diagnose.growth.series import Point
from memfit.record.recording import Recording
from memfit.units import format_size

_NEAR_SHARE = 0.9


def peak_rss_bytes(recording: Recording, points: Sequence[Point]) -> int | None:
    """Returns the most RSS of the process tree: sampled, or the kernel's own mark if higher."""
    marks = [sample.process.peak_rss_bytes for sample in (*recording.outside, *recording.inside)]
    if recording.exit is not None:
        marks.append(recording.exit.peak_rss_bytes)
    seen = [point.rss_bytes for point in points]
    return max((*seen, *(mark for mark in marks if mark is not None)), default=None)


def peak_held_bytes(recording: Recording, points: Sequence[Point]) -> int:
    """Returns the most that the process tree held and could not be reclaimed."""
    file_bytes = min(
        (sample.process.file_bytes or 0 for sample in recording.outside[-10:]), default=0
    )
    of_kernel = (recording.exit.peak_rss_bytes or 0) - file_bytes if recording.exit else 0
    return max((*(point.held_bytes for point in points), of_kernel), default=0)


def peak_limited_bytes(recording: Recording, points: Sequence[Point]) -> int:
    """Returns the most of what the limit is about: that of a control group is about all in it."""
    of_tree = peak_held_bytes(recording, points)
    limit = recording.header.limit if recording.header else None
    if limit is None or not limit.source.startswith("cgroup"):
        return of_tree
    groups = (sample.control_group for sample in recording.outside)
    of_group = (group.anonymous_bytes or 0 for group in groups if group is not None)
    return max((of_tree, *of_group))


def headroom_bytes(recording: Recording, points: Sequence[Point]) -> int | None:
    """Returns what is left until the limit, as last seen; `None` if no limit is known."""
    limit = recording.header.limit if recording.header else None
    if limit is None or not points:
        return None
    room_bytes = limit.limit_bytes - points[-1].held_bytes
    last = recording.outside[-1] if recording.outside else None
    if last is not None and last.control_group is not None and limit.source.startswith("cgroup"):
        room_bytes = limit.limit_bytes - (last.control_group.anonymous_bytes or 0)
    if last is not None and last.available_bytes is not None:
        room_bytes = min(room_bytes, last.available_bytes)
    return max(room_bytes, 0)


def find_near_limit(recording: Recording, points: Sequence[Point]) -> Finding | None:
    """Returns a finding if the run used nearly all that it may."""
    limit = recording.header.limit if recording.header else None
    if limit is None:
        return None
    peak_bytes = peak_limited_bytes(recording, points)
    if peak_bytes < _NEAR_SHARE * limit.limit_bytes:
        return None
    return Finding(
        code="near-limit",
        message=(
            f"Memory that cannot be reclaimed reached {format_size(peak_bytes)}, "
            f"{peak_bytes / limit.limit_bytes:.0%} of the {format_size(limit.limit_bytes)} limit "
            f"({limit.source})."
        ),
        confidence="certain",
        fix=(
            "A slightly larger batch, a validation pass or a checkpoint may get this run killed. "
            "Raise the limit, or lower the batch size before the next one."
        ),
        evidence={
            "peak_held_bytes": peak_bytes,
            "limit_bytes": limit.limit_bytes,
            "limit_source": limit.source,
        },
    )
