"""Who ended a run with SIGKILL, and what its last moments looked like."""

from collections.abc import Sequence

from memfit.diagnose.causes.finding import Finding
from memfit.diagnose.growth.growth import Growth
from memfit.diagnose.growth.series import Point
from memfit.diagnose.limits import peak_held_bytes
from memfit.measure.limits import Limit
from memfit.record.recording import Recording
from memfit.record.samples import Exit
from memfit.units import format_duration, format_size


def find_killed(
    recording: Recording, points: Sequence[Point], growth: Growth | None
) -> Finding | None:
    """Returns a finding if the script was killed."""
    ended = recording.exit
    if ended is None or ended.signal != "SIGKILL":
        return None
    limit = recording.header.limit if recording.header else None
    peak_bytes = peak_held_bytes(recording, points)
    who, confidence = _who(ended)
    parts = [f"{who}{_where(ended, peak_bytes, limit)}.", *_exclude(ended)]
    if growth is not None:
        ago_s = max(ended.t_s - growth.end_t_s, 0.0)
        parts.append(f"{format_duration(ago_s)} earlier it was growing by {format_rate(growth)}.")
    return Finding(
        code="killed",
        message=" ".join(parts),
        confidence=confidence,
        fix=_advise(ended, growth),
        evidence={
            "peak_held_bytes": peak_bytes,
            "limit_bytes": limit.limit_bytes if limit else None,
            "limit_source": limit.source if limit else None,
            "group_oom_kills": ended.group_oom_kills,
            "machine_oom_kills": ended.machine_oom_kills,
        },
    )


def format_rate(growth: Growth) -> str:
    """Returns the rate in the unit that a user thinks in."""
    if growth.bytes_per_epoch is not None:
        return f"{format_size(growth.bytes_per_epoch)}/epoch"
    if growth.bytes_per_step is not None:
        return f"{format_size(growth.bytes_per_s)}/s ({format_size(growth.bytes_per_step)}/step)"
    return f"{format_size(growth.bytes_per_s)}/s"


def _who(ended: Exit) -> tuple[str, str]:
    if ended.group_oom_kills:
        return "Killed by the kernel, out of memory in its control group", "certain"
    if ended.machine_oom_kills:
        return "Killed by the kernel, out of memory on this machine", "likely"
    if ended.group_oom_kills is None and ended.machine_oom_kills is None:
        return "Killed by SIGKILL from an unknown sender", "certain"
    return "Killed by SIGKILL", "certain"


def _exclude(ended: Exit) -> list[str]:
    """What the counts of the kernel exclude."""
    if ended.group_oom_kills or ended.machine_oom_kills or ended.group_oom_kills is None:
        return []
    return [
        "The kernel counted no out-of-memory kill, so it came from the script itself, a user, a "
        "scheduler or a daemon that watches memory (systemd-oomd, earlyoom)."
    ]


def _where(ended: Exit, peak_bytes: int, limit: Limit | None) -> str:
    """At which size, and of which limit if that is why it was killed."""
    if not peak_bytes:
        return ""
    if limit is None or not (ended.group_oom_kills or ended.machine_oom_kills):
        return f" at a peak of {format_size(peak_bytes)}"
    limit_size = format_size(limit.limit_bytes)
    return f" at {format_size(peak_bytes)} of a {limit_size} limit ({limit.source})"


def _advise(ended: Exit, growth: Growth | None) -> str:
    is_for_memory = bool(ended.group_oom_kills or ended.machine_oom_kills)
    if growth is not None:
        return (
            "More memory only delays this: usage grows until the limit. "
            "See where it grows: memfit report"
        )
    if is_for_memory:
        return "Give it more memory, lower the batch size, or keep less data in memory."
    return "Find the sender: the script, a scheduler's memory or time limit, or a user."
