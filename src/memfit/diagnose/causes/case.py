"""What the causes look at: a recording, its memory over time, and how to read the evidence."""

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from memfit.diagnose.growth.growth import Growth
from memfit.diagnose.growth.phases import Phase
from memfit.diagnose.growth.series import Point
from memfit.measure.malloc import AllocatorMemory
from memfit.record.evidence import (
    Allocated,
    Buffer,
    Called,
    Hinted,
    Holding,
    Loaded,
    Look,
    Made,
    RemedyTrial,
    Retraced,
)
from memfit.record.recording import Recording
from memfit.record.samples import Sample

Seen = TypeVar(
    "Seen", Holding, Retraced, Made, Buffer, Loaded, Called, Allocated, RemedyTrial, Hinted
)
# A file and a line of the user's code, where known.
Line = tuple[str | None, int | None]
# Evidence of a growth that is over does not explain one that goes on.
_STALE_SHARE = 0.4
_FEWEST_LOOKS = 4


@dataclass(frozen=True, slots=True)
class Rise:
    """How a count went up while memory grew.

    Attributes:
        before: At the beginning.
        now: At the end.
        num_rises: In how many looks it was higher than in the one before.
        num_looks: How many looks there were.
    """

    before: int
    now: int
    num_rises: int
    num_looks: int

    @property
    def more(self) -> int:
        """By how much it went up."""
        return self.now - self.before


@dataclass(frozen=True, slots=True)
class Case:
    """One run under examination.

    Attributes:
        recording: The run.
        points: Its memory over time.
        phases: What it did when.
        growth: Its steady growth, if there is any.
        peak_bytes: The most that it held.
        limit_bytes: What it may hold.
    """

    recording: Recording
    points: Sequence[Point]
    phases: Sequence[Phase]
    growth: Growth | None
    peak_bytes: int | None = None
    limit_bytes: int | None = None

    @property
    def risen_bytes(self) -> int:
        """What memory grew by, over the time in which it grew."""
        if self.growth is None:
            return 0
        return self.risen_between(self.growth.begin_t_s, self.growth.end_t_s)

    def risen_between(self, begin_t_s: float, end_t_s: float) -> int:
        """Returns by how much memory rose between two moments; at least 1."""
        during = [
            one.held_bytes for one in self.points if begin_t_s - 1 <= one.t_s <= end_t_s + 0.1
        ]
        return max(during[-1] - during[0], 1) if during else 1

    def epochs_between(self, begin_t_s: float, end_t_s: float) -> int:
        """Returns how many epochs ended between two moments."""
        return sum(
            1 for one in self.phases if one.name == "epoch" and begin_t_s < one.end_t_s <= end_t_s
        )

    def newest(self, kind: type[Seen], key: Callable[[Seen], Hashable]) -> list[Seen]:
        """Returns the last evidence of `kind` for each `key`, unless it is long out of date."""
        end_t_s = self.growth.end_t_s if self.growth else self.recording.end_t_s
        begin_t_s = self.growth.begin_t_s if self.growth else self.recording.begin_t_s
        stale_t_s = end_t_s - _STALE_SHARE * (end_t_s - begin_t_s) - 5.0
        since_t_s = min(stale_t_s, self._last_look_t_s)
        return [one for one in self.newest_ever(kind, key) if one.t_s >= since_t_s]

    def newest_ever(self, kind: type[Seen], key: Callable[[Seen], Hashable]) -> list[Seen]:
        """Returns the last evidence of `kind` for each `key`, however old."""
        return list({key(one): one for one in self.recording.of(kind)}.values())

    @property
    def _last_look_t_s(self) -> float:
        looks = self.recording.of(Look)
        return looks[-1].t_s if looks else float("inf")

    def rise(self, number: str) -> Rise | None:
        """Returns how the count called `number` went up while memory grew."""
        return self._rise([one.numbers.get(number) for one in self._looks()])

    def alive_rise(self, thing: str, file: str, line: int) -> Rise | None:
        """Returns how the number of living things made at one line went up."""
        rows = [
            one.alive
            for one in self.recording.of(Made)
            if (one.thing, one.file, one.line) == (thing, file, line)
        ]
        return self._rise([0, *rows])

    def _looks(self) -> list[Look]:
        looks = [one for one in self.recording.of(Look) if one.level == "counts"]
        if self.growth is None:
            return looks
        during = [one for one in looks if one.t_s >= self.growth.begin_t_s - 1]
        return during if len(during) >= _FEWEST_LOOKS else looks[-_FEWEST_LOOKS:]

    @staticmethod
    def _rise(values: Sequence[int | None]) -> Rise | None:
        known = [value for value in values if value is not None]
        if len(known) > 2 and known[-1] < known[-2]:
            known.pop()  # the last look may come after the script, when everything is freed
        if len(known) < 2:
            return None
        rises = sum(after > before for before, after in itertools.pairwise(known))
        return Rise(known[0], known[-1], rises, len(known))

    def made(self, *kinds: str) -> list[Made]:
        """Returns what was made again and again, the most often made first."""
        made = self.newest(Made, lambda one: (one.thing, one.file, one.line))
        wanted = [one for one in made if one.thing in kinds]
        return sorted(wanted, key=lambda one: -(one.made - one.made_before))

    def malloc_samples(self) -> list[tuple[Sample, AllocatorMemory]]:
        """Returns samples taken while memory grew, each with what malloc said at that moment."""
        if self.growth is None:
            return []
        begin_t_s, end_t_s = self.growth.begin_t_s - 1, self.growth.end_t_s
        return [
            (one, one.allocator)
            for one in self.recording.inside
            if one.allocator is not None and begin_t_s <= one.t_s <= end_t_s
        ]

    def growing_line(self) -> Line:
        """Returns the line that ran when memory rose most, where that is known.

        What rises between one `fit` and the next belongs to the lines that run in between.
        """
        begin_t_s = self.growth.begin_t_s if self.growth else float("-inf")
        samples = [one for one in self.recording.inside if one.t_s >= begin_t_s - 1]
        risen: Counter[str | None] = Counter()
        for before, after in itertools.pairwise(samples):
            rise = after.process.held_bytes - before.process.held_bytes
            fits = {one.progress.fit if one.progress else None for one in (before, after)}
            if rise > 0:
                risen[after.at if len(fits) == 1 else None] += rise
        if not risen or risen.most_common(1)[0][0] is not None:
            return self.busiest_line()
        between = Counter(
            one.at for one in samples if one.at and one.progress and one.progress.epoch is None
        )
        inside = Counter(
            one.at for one in samples if one.at and one.progress and one.progress.epoch
        )
        own = [line for line, _ in between.most_common() if line not in inside]
        if not own:
            return self.busiest_line()
        return _line(own[0])

    def busiest_line(self) -> Line:
        """Returns the line of the user's code that ran most of the time while memory grew."""
        begin_t_s = self.growth.begin_t_s if self.growth else float("-inf")
        lines = Counter(one.at for one in self.recording.inside if one.at and one.t_s >= begin_t_s)
        return _line(lines.most_common(1)[0][0]) if lines else (None, None)


def _line(at: str) -> Line:
    file, _, line = at.rpartition(":")
    return file, int(line)


def is_continuing(rise: Rise | None, least: int = 3) -> bool:
    """Whether a count went up by much enough and more than once."""
    return rise is not None and rise.more >= least and rise.num_rises >= 2
