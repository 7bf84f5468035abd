"""What is known of a run while it goes on, read from its own files as they grow."""

from pathlib import Path

from memfit.diagnose.growth.growth import Growth, judge_growth
from memfit.diagnose.growth.phases import find_phases
from memfit.diagnose.growth.series import total_series
from memfit.measure.limits import Limit
from memfit.record.read_run import FileReader
from memfit.record.recording import Recording
from memfit.record.run_folder import SUPERVISOR_FILE, list_files
from memfit.record.samples import Header, Mark, Sample, StepProgress
from memfit.report.live_line import LiveStatus

# Growth is judged again this often, and more rarely as a run gets long.
_JUDGE_EVERY_S = 5.0
_JUDGE_SHARE = 0.01
_MOST_KEPT = 4000


class LiveRun:
    """Follows one run.

    Args:
        run: Folder of the run.
    """

    def __init__(self, run: Path) -> None:
        self._run = run
        self._readers: dict[str, FileReader] = {}
        self._outside: list[Sample] = []
        self._inside: list[Sample] = []
        self._marks: list[Mark] = []
        self._limit: Limit | None = None
        self._progress: StepProgress | None = None
        self._growth: Growth | None = None
        self._peak_bytes = 0
        self._begin_s: float | None = None
        self._judged_s = 0.0

    def update(self, sample: Sample, now_s: float) -> LiveStatus:
        """Takes in the supervisor's newest sample and what the agents have written since."""
        self._outside = _thinned([*self._outside, sample])
        self._read_agents()
        rss_bytes = sample.process.rss_bytes + sample.children_rss_bytes
        highest = sample.process.peak_rss_bytes or 0
        self._peak_bytes = max(self._peak_bytes, rss_bytes, highest)
        self._judge_now_and_then(now_s)
        return LiveStatus(rss_bytes, self._peak_bytes, self._limit, self._growth, self._progress)

    def _read_agents(self) -> None:
        for path in list_files(self._run):
            reader = self._readers.setdefault(path.name, FileReader(path))
            for entry in reader.read_new():
                if isinstance(entry, Header) and path.name == SUPERVISOR_FILE:
                    self._limit = entry.limit
                elif isinstance(entry, Mark):
                    self._marks.append(entry)
                elif isinstance(entry, Sample) and path.name != SUPERVISOR_FILE:
                    self._inside.append(entry)
                    self._progress = entry.progress or self._progress
        self._inside = _thinned(self._inside)

    def _judge_now_and_then(self, now_s: float) -> None:
        self._begin_s = self._begin_s or now_s
        every_s = max(_JUDGE_EVERY_S, _JUDGE_SHARE * (now_s - self._begin_s))
        if now_s - self._judged_s < every_s:
            return
        self._judged_s = now_s
        recording = Recording("", outside=tuple(self._outside), inside=tuple(self._inside))
        points = total_series(recording)
        phases = find_phases(self._marks, points, now_s)
        self._growth = judge_growth(points, phases).growth


def _thinned(samples: list[Sample]) -> list[Sample]:
    """Every second sample once there are too many: the status must not grow itself."""
    return samples if len(samples) <= _MOST_KEPT else samples[::2]
