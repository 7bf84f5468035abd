"""The lines of the chart: which values of a recording they show, thinned for the page."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import count

from memfit.diagnose.diagnosis import Run
from memfit.record.recording import Recording

_MOST_POINTS = 2000
# The page has so many colours for devices; further ones begin again.
_NUM_DEVICE_ROLES = 4


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of the chart.

    Attributes:
        name: What it shows, in words.
        role: What the page paints it as.
        t_s: When each value was read.
        size_bytes: The values.
        is_device: Whether this is memory of an accelerator, which has a panel of its own.
    """

    name: str
    role: str
    t_s: tuple[float, ...]
    size_bytes: tuple[int, ...]
    is_device: bool = False

    @property
    def top_bytes(self) -> int:
        """Its highest value."""
        return max(self.size_bytes)


def find_curves(run: Run) -> list[Curve]:
    """Returns every line that the recording has values for."""
    recording = run.recording
    points, inside, outside = run.diagnosis.points, recording.inside, recording.outside
    everywhere = sorted((*outside, *inside), key=lambda sample: sample.t_s)
    rss = _curve("RSS, all processes", "rss", ((one.t_s, one.rss_bytes) for one in points))
    held = _curve("held, not reclaimable", "held", ((one.t_s, one.held_bytes) for one in points))
    malloc = ((one.t_s, one.allocator.in_use_bytes) for one in inside if one.allocator)
    children = ((one.t_s, one.children_rss_bytes) for one in outside)
    pss = ((one.t_s, one.proportional.pss_bytes) for one in everywhere if one.proportional)
    curves = [
        rss,
        # Where the system does not tell the two apart, one line is enough.
        *([held] if held.size_bytes != rss.size_bytes else []),
        _curve("malloc in use", "malloc", malloc),
        _curve("child processes", "children", children),
        _curve("PSS, all processes", "pss", pss),
        *_device_curves(recording),
    ]
    return [curve for curve in curves if any(curve.size_bytes)]


def thin_curve(curve: Curve, most_points: int = _MOST_POINTS) -> Curve:
    """Returns `curve` with at most `most_points`: its ends, and each bucket's least and most."""
    sizes = curve.size_bytes
    if len(sizes) <= most_points:
        return curve
    length = -(-len(sizes) // ((most_points - 2) // 2))
    kept = {0, len(sizes) - 1}
    for begin in range(0, len(sizes), length):
        bucket = range(begin, min(begin + length, len(sizes)))
        kept |= {min(bucket, key=sizes.__getitem__), max(bucket, key=sizes.__getitem__)}
    order = sorted(kept)
    return replace(
        curve,
        t_s=tuple(curve.t_s[at] for at in order),
        size_bytes=tuple(sizes[at] for at in order),
    )


def _curve(
    name: str, role: str, values: Iterable[tuple[float, int]], *, is_device: bool = False
) -> Curve:
    pairs = list(values)
    t_s = tuple(t_s for t_s, _ in pairs)
    return Curve(name, role, t_s, tuple(size_bytes for _, size_bytes in pairs), is_device)


def _device_curves(recording: Recording) -> list[Curve]:
    """Accelerators, as the framework and as the driver count; memory of the host is in RSS."""
    values: dict[str, list[tuple[float, int]]] = {}
    for sample in recording.inside:
        for device in sample.devices:
            if not device.on_host:
                name = f"{device.device}, in tensors"
                values.setdefault(name, []).append((sample.t_s, device.in_use_bytes))
    for sample in recording.outside:
        for number, card in enumerate(sample.nvidia):
            whose = "all processes" if card.ours_bytes is None else "this run"
            size_bytes = card.used_bytes if card.ours_bytes is None else card.ours_bytes
            name = f"{card.name} #{number}, {whose}"
            values.setdefault(name, []).append((sample.t_s, size_bytes))
    roles = (f"device-{number % _NUM_DEVICE_ROLES + 1}" for number in count())
    return [
        _curve(name, role, pairs, is_device=True)
        for (name, pairs), role in zip(values.items(), roles, strict=False)
    ]
