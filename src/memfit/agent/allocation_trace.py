"""A short trace of allocations: which line leaves what behind.

Python's own allocations and numpy's are seen with their bytes; tensors of TensorFlow, JAX and
torch keep theirs elsewhere, so those are found among all objects and counted by their shape.
"""

import sys
import time
import tracemalloc
from collections import defaultdict
from collections.abc import Iterator

from memfit.backends import load, loaded_backend_names
from memfit.backends.events import SCALAR_BYTES
from memfit.backends.objects import TENSOR_CLASSES
from memfit.failsafe import harmless
from memfit.heap.census import count_types, pick_objects
from memfit.heap.describe import describe
from memfit.record.evidence import Allocated
from memfit.slots import class_name
from memfit.user_code.frames import Line, find_running_line, is_user_file
from memfit.user_code.statements import place_at

_FRAMES = 24
_MOST_LINES = 5
_LEAST_BYTES = 50_000


class AllocationTrace:
    """Traces allocations until `close`. What is in both of two snapshots stays; the rest passes."""

    def __init__(self) -> None:
        self._begun_s = time.monotonic()
        self._first: dict[Line, tuple[int, int]] | None = None
        self._first_s = 0.0
        self._scalars: dict[Line, set[float]] = defaultdict(set)
        self._stops = [
            load("events", name).watch_scalars(self._note_scalar) for name in loaded_backend_names()
        ]
        tracemalloc.start(_FRAMES)

    @harmless
    def _note_scalar(self, value: float) -> None:
        line = find_running_line(sys._getframe(1))
        if line is not None:
            self._scalars[line].add(value)

    @staticmethod
    def is_possible() -> bool:
        """Whether the script does not trace allocations itself."""
        return not tracemalloc.is_tracing()

    @property
    def age_s(self) -> float:
        """Time since it began."""
        return time.monotonic() - self._begun_s

    def take_first_snapshot(self) -> None:
        """Takes the first snapshot, after the first steps."""
        if self._first is None:
            self._first = _python_lines()
            self._first_s = time.monotonic()

    def close(self) -> list[Allocated]:
        """Ends the tracing and returns the lines that left the most behind."""
        try:
            now = time.monotonic()
            before = self._first or {}
            python = {
                line: (size - before.get(line, (0, 0))[0], count - before.get(line, (0, 0))[1])
                for line, (size, count) in _python_lines().items()
            }
            tensors = _tensor_lines()
        finally:
            tracemalloc.stop()
            for stop in self._stops:
                stop()
        scalars = {
            line: (SCALAR_BYTES * len(values), len(values))
            for line, values in self._scalars.items()
        }
        traced_s = now - (self._first_s or self._begun_s)
        return [
            *_top("scalar", scalars, now, now - self._begun_s, least_bytes=0),
            *_top("tensor", tensors, now, now - self._begun_s),
            *_top("python", python, now, traced_s),
        ]


def _top(
    thing: str,
    lines: dict[Line, tuple[int, int]],
    now_t_s: float,
    traced_s: float,
    *,
    least_bytes: int = _LEAST_BYTES,
) -> Iterator[Allocated]:
    most = sorted(lines.items(), key=lambda item: -item[1][0])[:_MOST_LINES]
    for (file, line), (size, count) in most:
        if size >= least_bytes:
            place = place_at(file, line)
            yield Allocated(now_t_s, round(traced_s, 3), thing, size, count, *place)


def _python_lines() -> dict[Line, tuple[int, int]]:
    """Bytes and blocks by the innermost line of the user's code."""
    lines: dict[Line, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for statistic in tracemalloc.take_snapshot().statistics("traceback"):
        line = _user_line(statistic.traceback)
        if line is not None:
            size, count = lines[line]
            lines[line] = (size + statistic.size, count + statistic.count)
    return dict(lines)


def _tensor_lines() -> dict[Line, tuple[int, int]]:
    """Tensors that were made during the trace and are alive, by the line that made them."""
    lines: dict[Line, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for tensor in pick_objects(
        [one.kind for one in count_types().values() if class_name(one.kind) in TENSOR_CLASSES]
    ):
        trace = tracemalloc.get_object_traceback(tensor)
        line = _user_line(trace) if trace is not None else None
        known = describe(tensor) if line is not None else None
        if line is not None and known is not None:
            size, count = lines[line]
            lines[line] = (size + known.size_bytes, count + 1)
    return dict(lines)


def _user_line(trace: tracemalloc.Traceback) -> Line | None:
    """The innermost line of the user's code; frames come with the oldest first."""
    for frame in reversed(trace):
        if is_user_file(frame.filename):
            return frame.filename, frame.lineno
    return None
