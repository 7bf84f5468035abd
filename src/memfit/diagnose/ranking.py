"""Puts the causes together: which there are, in which order, and the part that each has."""

from dataclasses import replace

from memfit.diagnose.causes.case import Case
from memfit.diagnose.causes.catalogue import ALWAYS, CHECKS, LAST_RESORTS, cause_of
from memfit.diagnose.causes.finding import Finding

# With less than this explained, the last resorts are asked.
_ENOUGH_SHARE = 0.4
# Less than this is not worth a user's time.
_LEAST_SHARE = 0.05
_HOLDER_SHARE = 0.2
# Two findings of one code at one line are one.
_Place = tuple[object, ...]


def find_causes(case: Case) -> tuple[Finding, ...]:
    """Returns what makes memory grow, the largest share first; shares never exceed the whole."""
    found = _once([finding for check in CHECKS for finding in check(case)])
    if case.growth is not None and not _is_explained(found):
        for check in LAST_RESORTS:
            more = check(case)
            if more:
                found = _once([*found, *more])
                break
    if case.growth is None:
        shared = [replace(one, share=None) for one in found]
    else:
        shared = [one for one in _share_out(found) if (one.share or 0.0) >= _LEAST_SHARE]
    has_holder = any(
        one.holder is not None and (one.share or 0.0) >= _HOLDER_SHARE for one in shared
    )
    is_clear = any(one.code == "retracing" and one.confidence == "certain" for one in shared)
    # What a name holds comes before what is only inferred: the rest often follows from it. So do
    # compilations of which nobody saw what changed, among equals.
    ordered = sorted(
        shared,
        key=lambda one: (
            has_holder and cause_of(one.code).is_inferred,
            -(one.share or 0.0),
            one.code == "retracing" and not is_clear,
        ),
    )
    return (*ordered, *(finding for check in ALWAYS for finding in check(case)))


def _is_explained(findings: list[Finding]) -> bool:
    """Whether enough is measured, or something was found whose bytes cannot be measured."""
    is_counted = sum(one.share or 0.0 for one in findings) >= _ENOUGH_SHARE
    return is_counted or any(one.share is None for one in findings)


def _once(findings: list[Finding]) -> list[Finding]:
    """Drops what says the same again.

    A code that has a named holder needs no other mention, nor does what belongs to something
    else that accumulates: the optimizer of a model, the file of a writer.
    """
    kept: list[Finding] = []
    places: set[_Place] = set()
    named = {one.code for one in findings if one.holder is not None}
    parts = {part for one in findings for part in cause_of(one.code).brings_along}
    for one in findings:
        place: _Place = (one.code, one.file, one.line, one.holder)
        if cause_of(one.code).family == "accumulating" and one.holder is None:
            place = (one.code,)  # the line at which most are made stands for the others
        is_covered = one.holder is None and (one.code in named or one.code in parts)
        if place not in places and not is_covered:
            places.add(place)
            kept.append(one)
    return kept


def _share_out(findings: list[Finding]) -> list[Finding]:
    """Gives what is not measured the rest, in equal parts, and scales down what exceeds all.

    What is only inferred gets no more than what named holders leave.
    """
    left = max(1.0 - sum(one.share or 0.0 for one in findings if one.holder is not None), 0.0)
    findings = [
        replace(one, share=min(one.share, left))
        if cause_of(one.code).is_inferred and one.share is not None and one.holder is None
        else one
        for one in findings
    ]
    measured = sum(one.share for one in findings if one.share is not None)
    scale = 1 / measured if measured > 1 else 1.0
    uncounted = [one for one in findings if one.share is None]
    rest = max(1.0 - measured * scale, 0.0) / max(len(uncounted), 1)
    return [
        replace(one, share=one.share * scale)
        if one.share is not None
        else replace(one, share=rest, share_is_rest=True)
        for one in findings
    ]
