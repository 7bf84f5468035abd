"""What a diagnosis says in words: the same sentences in the terminal and on the page."""

from collections.abc import Sequence

from memfit.budget import Budget
from memfit.diagnose.causes.catalogue import cause_of
from memfit.diagnose.causes.finding import Finding
from memfit.diagnose.diagnosis import Diagnosis, Run
from memfit.diagnose.growth.growth import Growth
from memfit.diagnose.killed import format_rate
from memfit.record.recording import Recording
from memfit.units import format_duration, format_size

_LEAST_SHARE = 0.01
_NEARLY_ALL = 0.95
_ALL = 0.995


def headline(run: Run) -> str:
    """Returns the verdict as one sentence with figures."""
    diagnosis = run.diagnosis
    if diagnosis.verdict in ("killed", "near_limit"):
        return diagnosis.findings[0].message
    if diagnosis.verdict == "failed":
        return f"The script failed: {_how_it_ended(run.recording)}."
    if diagnosis.growth is not None:
        return f"Memory grows by {format_rate(diagnosis.growth)}."
    if diagnosis.verdict == "steady":
        return "Memory is steady."
    return f"Cannot tell whether memory grows: {diagnosis.why_unknown}"


def explain(run: Run) -> list[str]:
    """Returns what the verdict means for the user, a sentence each."""
    recording, diagnosis = run.recording, run.diagnosis
    sentences = []
    growth = diagnosis.growth
    if growth is not None and diagnosis.verdict not in ("growing", "killed"):
        sentences.append(f"It was growing by {format_rate(growth)}.")
    if growth is not None:
        sentences.append(_how_sure(growth))
        if diagnosis.verdict == "growing":
            sentences += _projection(growth, diagnosis)
        sentences += _explained(diagnosis)
    sentences.append(_peak(diagnosis))
    sentences += _budget(run)
    if recording.exit is not None and diagnosis.verdict not in ("failed", "killed"):
        if recording.exit.signal is not None:
            sentences.append(f"The script was ended by {recording.exit.signal}.")
    elif recording.exit is None:
        sentences.append("memfit did not see it end: it is still running, or memfit stopped first.")
    return sentences


def place_of(finding: Finding) -> str | None:
    """Returns where in the user's code it is, such as `"train.py:14"`."""
    if finding.file is None:
        return None
    return finding.file if finding.line is None else f"{finding.file}:{finding.line}"


def share_of_growth(finding: Finding) -> str | None:
    """Returns how much of all growth it is; where that was not measured, what is known of it."""
    if finding.share is None:
        return None
    if finding.share_is_rest:
        is_alone = finding.share >= _ALL
        rest = "no other cause found" if is_alone else "the part that no other cause explains"
        return f"{rest}; not measured in bytes"
    is_little = finding.share < _LEAST_SHARE
    return f"{'under 1%' if is_little else format(finding.share, '.0%')} of the growth"


def evidence_of(finding: Finding) -> dict[str, float | int | str | None]:
    """Returns the evidence with what keeps the memory first, where that was seen."""
    holder = {} if finding.holder is None else {"holder": finding.holder}
    return {**holder, **finding.evidence}


def caught_by_lint(finding: Finding) -> str:
    """Returns which rules of lint find it before anything runs."""
    return f"`memfit lint` catches this: {', '.join(finding.lint)}"


def _how_sure(growth: Growth) -> str:
    unit = "epochs" if growth.unit == "epoch" else "intervals"
    per_s = growth.bytes_per_epoch is None
    rate = growth.bytes_per_s if growth.bytes_per_epoch is None else growth.bytes_per_epoch
    low, high = format_size(rate * growth.low_share), format_size(rate * growth.high_share)
    return (
        f"Measured over {growth.num_intervals} {unit}; "
        f"between {low} and {high} per {'second' if per_s else 'epoch'} (90% confidence)."
    )


def _explained(diagnosis: Diagnosis) -> list[str]:
    """How much of the growth the causes account for; nothing where it is all or none."""
    shares = [one.share or 0.0 for one in diagnosis.findings if cause_of(one.code).explains_growth]
    explained = sum(shares)
    if not 0 < explained < _NEARLY_ALL:
        return []
    return [f"The causes below explain {explained:.0%} of it; the rest is unexplained."]


def _projection(growth: Growth, diagnosis: Diagnosis) -> list[str]:
    left_s = diagnosis.projected_exhaustion_s
    if left_s is None:
        return []
    if growth.bytes_per_epoch is None:
        return [f"At this rate memory runs out in about {format_duration(left_s)}."]
    epochs = round(left_s * growth.bytes_per_s / growth.bytes_per_epoch)
    count = "1 epoch" if epochs == 1 else f"{epochs:,} epochs"
    return [f"At this rate memory runs out in {count}, about {format_duration(left_s)}."]


def _peak(diagnosis: Diagnosis) -> str:
    if diagnosis.peak_bytes is None:
        return "No memory was measured."
    peak = format_size(diagnosis.peak_bytes)
    if diagnosis.limit is None:
        return f"Peak {peak}; the limit is unknown."
    limit = diagnosis.limit
    share = diagnosis.peak_bytes / limit.limit_bytes
    return (
        f"Peak {peak}, {share:.0%} of the {format_size(limit.limit_bytes)} limit ({limit.source})."
    )


def _budget(run: Run) -> list[str]:
    """What became of `memfit run --budget`; of a script that failed its own words tell more."""
    recording, diagnosis = run.recording, run.diagnosis
    budget = recording.header.budget if recording.header else None
    if budget is not None and diagnosis.uncontrolled:
        return [_tell_uncontrolled(budget, diagnosis.uncontrolled)]
    if budget is None or budget.place != "host":
        return []
    if diagnosis.peak_bytes is None or diagnosis.verdict == "failed":
        return []
    the_budget = f"The budget of {budget}"
    if not any(phase.name == "fit" for phase in diagnosis.phases):
        return [f"{the_budget} had no effect: it is for model.fit, which this script did not call."]
    if diagnosis.peak_bytes <= budget.size_bytes:
        return [f"{the_budget} was kept."]
    more = format_size(diagnosis.peak_bytes - budget.size_bytes)
    return [f"{the_budget} was exceeded by {more}."]


def _tell_uncontrolled(budget: Budget, reasons: Sequence[str]) -> str:
    number = "ONE CALL OF FIT" if len(reasons) == 1 else f"{len(reasons)} CALLS OF FIT"
    return f"THE BUDGET OF {budget} DID NOT CONTROL {number}: {reasons[0]}"


def _how_it_ended(recording: Recording) -> str:
    ended = recording.exit
    if ended is None:
        return "the reason is unknown"
    if ended.signal is not None:
        return f"ended by {ended.signal}"
    return f"exit code {ended.code}"
