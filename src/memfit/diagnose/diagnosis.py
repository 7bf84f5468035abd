"""The diagnosis of a run: one verdict, the figures under it, the findings."""

from dataclasses import dataclass

from memfit.diagnose.annotate import complete
from memfit.diagnose.causes.case import Case
from memfit.diagnose.causes.catalogue import cause_of
from memfit.diagnose.causes.finding import Finding
from memfit.diagnose.growth.growth import Growth, judge_growth
from memfit.diagnose.growth.phases import Phase, find_phases
from memfit.diagnose.growth.series import Point, first_trim_t_s, total_series
from memfit.diagnose.killed import find_killed
from memfit.diagnose.limits import find_near_limit, headroom_bytes, peak_rss_bytes
from memfit.diagnose.ranking import find_causes
from memfit.measure.limits import Limit
from memfit.record.recording import Recording

# Sent by users and schedulers to end a run; none of these is the script's failure.
_REQUESTS_TO_STOP = ("SIGHUP", "SIGINT", "SIGTERM")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a recording says.

    Attributes:
        verdict: `"steady"`, `"growing"`, `"near_limit"`, `"killed"`, `"failed"` or `"unknown"`.
        peak_bytes: The most RSS of the process tree; `None` if nothing was seen.
        limit: The limit that the training would meet first.
        growth: Steady growth, if there is any.
        why_unknown: Why growth cannot be judged, if it cannot.
        projected_exhaustion_s: Time until the limit at this rate.
        phases: What the training did when.
        findings: What is wrong.
        points: Memory over time.
        uncontrolled: Why calls of `fit` were not held to the budget, one sentence each.
    """

    verdict: str
    peak_bytes: int | None = None
    limit: Limit | None = None
    growth: Growth | None = None
    why_unknown: str | None = None
    projected_exhaustion_s: float | None = None
    phases: tuple[Phase, ...] = ()
    findings: tuple[Finding, ...] = ()
    points: tuple[Point, ...] = ()
    uncontrolled: tuple[str, ...] = ()

    @property
    def has_problem(self) -> bool:
        """Whether memory needs a user's attention."""
        is_grave = self.verdict in ("growing", "near_limit", "killed") or bool(self.uncontrolled)
        return is_grave or any(finding.is_problem for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Run:
    """What was recorded of a run, and what that says."""

    recording: Recording
    diagnosis: Diagnosis

    @classmethod
    def of(cls, recording: Recording) -> "Run":
        """Returns `recording` with its diagnosis."""
        return cls(recording, diagnose(recording))


def diagnose(recording: Recording) -> Diagnosis:
    """Returns the diagnosis of a run, finished or not."""
    points = total_series(recording)
    phases = find_phases(recording.marks, points, recording.end_t_s)
    judgement = judge_growth(points, phases, first_trim_t_s(recording))
    growth = judgement.growth
    limit = recording.header.limit if recording.header else None
    # A kill says all that nearness to the limit would.
    grave = find_killed(recording, points, growth) or find_near_limit(recording, points)
    peak_bytes = peak_rss_bytes(recording, points)
    case = Case(recording, points, phases, growth, peak_bytes, limit.limit_bytes if limit else None)
    causes = complete(find_causes(case), recording)
    findings = causes if grave is None else (grave, *causes)
    room_bytes = headroom_bytes(recording, points)
    return Diagnosis(
        verdict=_verdict(recording, findings, judgement.why_unknown, growth),
        peak_bytes=peak_bytes,
        limit=limit,
        growth=growth,
        why_unknown=judgement.why_unknown,
        projected_exhaustion_s=room_bytes / growth.bytes_per_s
        if growth is not None and room_bytes is not None
        else None,
        phases=phases,
        findings=findings,
        points=points,
        uncontrolled=recording.uncontrolled,
    )


def _verdict(
    recording: Recording,
    findings: tuple[Finding, ...],
    why_unknown: str | None,
    growth: Growth | None,
) -> str:
    """The most severe verdict that applies."""
    verdicts = {cause_of(finding.code).verdict for finding in findings}
    if "killed" in verdicts:
        return "killed"
    if _has_failed(recording):
        return "failed"
    if "near_limit" in verdicts:
        return "near_limit"
    if growth is not None:
        return "growing"
    return "unknown" if why_unknown else "steady"


def _has_failed(recording: Recording) -> bool:
    ended = recording.exit
    if ended is None:
        return False
    return bool(ended.code) or (ended.signal or "SIGTERM") not in _REQUESTS_TO_STOP
