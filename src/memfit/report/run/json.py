"""A run as JSON, for machines."""

import json
from collections.abc import Sequence
from typing import Any

from memfit.diagnose.causes.finding import Finding
from memfit.diagnose.diagnosis import Run
from memfit.diagnose.growth.growth import Growth
from memfit.diagnose.growth.phases import Phase
from memfit.record.recording import Recording
from memfit.report.run.sentences import evidence_of

FORMAT = 1


def render_json(run: Run) -> str:
    """Returns the result of a run as JSON text; `docs/json.md` describes it."""
    return json.dumps(to_plain(run), indent=2) + "\n"


def render_json_list(runs: Sequence[Run]) -> str:
    """Returns the results of many runs as one JSON list."""
    return json.dumps([to_plain(run) for run in runs], indent=2) + "\n"


def to_plain(run: Run) -> dict[str, Any]:
    """Returns the result of a run as plain dicts and lists."""
    recording, diagnosis = run.recording, run.diagnosis
    limit, software, ended = diagnosis.limit, recording.software, recording.exit
    return {
        "format": FORMAT,
        "verdict": diagnosis.verdict,
        "peak_bytes": diagnosis.peak_bytes,
        "limit_bytes": limit.limit_bytes if limit else None,
        "limit_source": limit.source if limit else None,
        "growth": _growth(diagnosis.growth, diagnosis.projected_exhaustion_s),
        "phases": [_phase(phase, recording.begin_t_s) for phase in diagnosis.phases],
        "findings": [_finding(finding) for finding in diagnosis.findings],
        "exit": {
            "code": ended.code if ended else None,
            "signal": ended.signal if ended else None,
        },
        "budget": _budget(run),
        "backend": software.backend if software else None,
        "versions": _versions(recording),
        "overhead": {"probe_s": _probe_s(recording), "wall_s": round(recording.duration_s, 3)},
        "run": recording.name,
        "why_unknown": diagnosis.why_unknown,
        "notes": [*recording.notes, *(trouble.message for trouble in recording.troubles)],
    }


def _budget(run: Run) -> dict[str, Any] | None:
    header, uncontrolled = run.recording.header, run.diagnosis.uncontrolled
    if header is None or header.budget is None:
        return None
    return {
        "size_bytes": header.budget.size_bytes,
        "place": header.budget.place,
        "controlled": not uncontrolled,
        "why": uncontrolled[0] if uncontrolled else None,
    }


def _growth(growth: Growth | None, exhaustion_s: float | None) -> dict[str, Any] | None:
    if growth is None:
        return None
    return {
        "bytes_per_epoch": _whole(growth.bytes_per_epoch),
        "bytes_per_step": _whole(growth.bytes_per_step),
        "bytes_per_s": _whole(growth.bytes_per_s),
        "projected_exhaustion_s": None if exhaustion_s is None else round(exhaustion_s, 1),
        "interval": [round(growth.low_share, 3), round(growth.high_share, 3)],
        "num_intervals": growth.num_intervals,
    }


def _phase(phase: Phase, begin_t_s: float) -> dict[str, Any]:
    return {
        "name": phase.name,
        "number": phase.number,
        "begin_s": round(phase.begin_t_s - begin_t_s, 3),
        "end_s": round(phase.end_t_s - begin_t_s, 3),
        "finished": phase.is_finished,
        "calls": phase.calls,
        "peak_bytes": phase.peak_bytes,
        "change_bytes": phase.change_bytes,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    rest = {"share_is_rest": 1} if finding.share_is_rest else {}
    return {
        "code": finding.code,
        "message": finding.message,
        "confidence": finding.confidence,
        "file": finding.file,
        "line": finding.line,
        "evidence": {**evidence_of(finding), **rest},
        "fix": finding.fix,
        "before": finding.before,
        "after": finding.after,
        "growth_bytes": finding.growth_bytes,
        "share": None if finding.share is None else round(finding.share, 3),
        "is_problem": finding.is_problem,
        "lint": list(finding.lint),
        "notes": list(finding.notes),
    }


def _versions(recording: Recording) -> dict[str, str]:
    header, software = recording.header, recording.software
    own = {"memfit": header.memfit, "python": header.python} if header else {}
    return {**own, **(software.versions if software else {})}


def _probe_s(recording: Recording) -> float | None:
    costs = [sample.probe_s for sample in recording.inside if sample.probe_s is not None]
    return costs[-1] if costs else None


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
