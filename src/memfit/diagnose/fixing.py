"""Adds to each finding what can be said on the user's own lines: fixed, and told by lint."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from memfit.diagnose.annotate import answer_folklore, cite, stream_instead
from memfit.diagnose.causes.finding import Finding
from memfit.fixes.statement import closing, fix_statement
from memfit.record.evidence import Called, Hinted

# The shape of a tensor of more than one number, as in "float32 (512, 64)".
_SHAPE = re.compile(r"\(\d")


def complete(
    findings: Sequence[Finding], hints: Sequence[Hinted], called: Sequence[Called]
) -> tuple[Finding, ...]:
    """Returns the findings with fixed statements, lint codes and answers to folklore."""
    fixed = [stream_instead(cite(_fix(finding), hints), hints) for finding in findings]
    return answer_folklore(fixed, hints, called)


def _fix(finding: Finding) -> Finding:
    if finding.before is None:
        return finding
    evidence = finding.evidence
    changed = str(evidence.get("changed", ""))
    after = fix_statement(
        finding.code,
        finding.before,
        item_kind=_item_kind(evidence),
        holder=str(evidence.get("holder", evidence.get("function", ""))),
        argument=changed.partition(":")[0] if "(Python " in changed else "",
        compiler=str(evidence.get("compiler", "")),
    )
    close = closing(finding.before) if finding.code == "accumulating-figures" else None
    fix = f"Close each one after saving it: {close}" if close else finding.fix
    return replace(finding, after=after, fix=fix)


def _item_kind(evidence: Mapping[str, object]) -> str:
    """What is kept, for `fix`: of a tensor that was seen to have a shape, that it has one."""
    kind = str(evidence.get("item_kind", evidence.get("stage", "")))
    is_shaped = _SHAPE.search(str(evidence.get("example", ""))) is not None
    return "many numbers" if kind in ("array", "tensor", "variable") and is_shaped else kind
