"""Small recordings made by hand."""

from memfit.diagnose.growth.phases import find_phases
from memfit.diagnose.growth.series import total_series
from memfit.measure.limits import Limit
from memfit.measure.malloc import AllocatorMemory
from memfit.measure.process import ChildMemory, ProcessMemory
from memfit.record.recording import Recording
from memfit.record.samples import FORMAT, Header, Mark, Sample, StepProgress

MB = 1_000_000
PID = 100


def header(limit_bytes=10_000 * MB, source="cgroup v2"):
    return Header(0.0, FORMAT, "supervisor", 1, 0.0, limit=Limit(limit_bytes, source))


def outside(t_s, held_bytes, *, file_bytes=0, children=(), **more):
    memory = ProcessMemory(
        held_bytes + file_bytes, anonymous_bytes=held_bytes, file_bytes=file_bytes
    )
    below = tuple(
        ChildMemory(200 + number, "worker", ProcessMemory(size, anonymous_bytes=size))
        for number, size in enumerate(children)
    )
    return Sample(t_s, PID, memory, children=below, **more)


def inside(t_s, held_bytes, *, free_bytes=0, steps=0, updates=0, calls=0):
    return Sample(
        t_s,
        PID,
        ProcessMemory(held_bytes, anonymous_bytes=held_bytes),
        allocator=AllocatorMemory(held_bytes - free_bytes, free_bytes, 0),
        progress=StepProgress(total_steps=steps, updates=updates, calls=calls),
    )


def trained(levels_bytes, *, frees_bytes=None, epoch_s=10.0, steps=100, **more):
    """A `fit` with one inside sample at the end of each epoch."""
    frees_bytes = frees_bytes or [0] * len(levels_bytes)
    marks, samples = [Mark(0.0, "begin", "fit", 1)], []
    for number, (level, free) in enumerate(zip(levels_bytes, frees_bytes, strict=True), 1):
        marks.append(Mark((number - 1) * epoch_s, "begin", "epoch", number))
        samples.append(inside(number * epoch_s, level, free_bytes=free, steps=number * steps))
        marks.append(Mark(number * epoch_s, "end", "epoch", number))
    end_t_s = len(levels_bytes) * epoch_s
    marks.append(Mark(end_t_s, "end", "fit", 1))
    return Recording(
        "made", header(), inside=tuple(samples), marks=tuple(marks), end_t_s=end_t_s, **more
    )


def points_and_phases(recording):
    points = total_series(recording)
    return points, find_phases(recording.marks, points, recording.end_t_s)
