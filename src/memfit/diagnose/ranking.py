"""Puts the causes together: which there are, in which order, and the part that each has."""

from dataclasses import replace

from memfit.diagnose.causes import ALWAYS, CAUSES, LAST_RESORTS
from memfit.diagnose.causes.case import Case
from memfit.diagnose.causes.finding import Finding

# With less than this explained, the last resorts are asked.
_ENOUGH_SHARE = 0.4
# Less than this is not worth a user's time.
_LEAST_SHARE = 0.05
_HOLDER_SHARE = 0.2
_INFERRED = ("allocator-retains", "uncollected-garbage", "unexplained-growth")
# What comes with each thing that piles up.
_PARTS = {
    "accumulating-models": (
        "accumulating-functions",
        "accumulating-optimizers",
        "accumulating-datasets",
        "accumulating-iterators",
        "retracing",
    ),
    "accumulating-functions": ("retracing",),
    "retracing": ("allocator-retains",),  # what compilers leave behind lies in pieces
    "uncollected-garbage": ("allocator-retains",),  # malloc keeps what the collection freed
    "accumulating-iterators": ("accumulating-threads", "accumulating-datasets"),
    "accumulating-datasets": ("accumulating-iterators",),
    "accumulating-writers": ("accumulating-files", "accumulating-threads"),
    "accumulating-figures": ("accumulating-files",),
}
# Two findings of one code at one line are one.
_Place = tuple[object, ...]


def find_causes(case: Case) -> tuple[Finding, ...]:
    """Returns what makes memory grow, the largest share first; shares never exceed the whole."""
    found = _once([finding for check in CAUSES for finding in check(case)])
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
        "holder" in one.evidence and (one.share or 0.0) >= _HOLDER_SHARE for one in shared
    )
    is_clear = any(one.code == "retracing" and one.confidence == "certain" for one in shared)
    # What a name holds comes before what is only inferred: the rest often follows from it. So do
    # compilations of which nobody saw what changed, among equals.
    ordered = sorted(
        shared,
        key=lambda one: (
            has_holder and one.code in _INFERRED,
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
    else that piles up: the optimizer of a model, the file of a writer.
    """
    kept: list[Finding] = []
    places: set[_Place] = set()
    named = {one.code for one in findings if "holder" in one.evidence}
    parts = {part for one in findings for part in _PARTS.get(one.code, ())}
    for one in findings:
        place: _Place = (one.code, one.file, one.line, one.evidence.get("holder"))
        if one.code.startswith("accumulating-") and "holder" not in one.evidence:
            place = (one.code,)  # the line at which most are made stands for the others
        is_told = "holder" not in one.evidence and (one.code in named or one.code in parts)
        if place not in places and not is_told:
            places.add(place)
            kept.append(one)
    return kept


def _share_out(findings: list[Finding]) -> list[Finding]:
    """Gives what is not measured the rest, in equal parts, and scales down what exceeds all.

    What is only inferred gets no more than what named holders leave.
    """
    left = max(1.0 - sum(one.share or 0.0 for one in findings if "holder" in one.evidence), 0.0)
    findings = [
        replace(one, share=min(one.share, left))
        if one.code in _INFERRED and one.share is not None and "holder" not in one.evidence
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
        else replace(one, share=rest, evidence={**one.evidence, "share_is_rest": 1})
        for one in findings
    ]
