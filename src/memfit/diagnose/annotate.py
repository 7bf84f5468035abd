"""Adds to each finding what is known of the user's own lines: the fix, and what lint says."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from memfit.diagnose.causes.finding import Finding
from memfit.fixes.statement import closing, fix_statement
from memfit.lint.hint import Rule
from memfit.lint.rules.folklore import (
    CLEAR_EACH_EPOCH,
    COLLECT_EACH_EPOCH,
    DELETE_IN_FUNCTION,
)
from memfit.record.evidence import Called, Hinted

# A hint so near stands at the same statement: a call, and the loop or the block around it.
_NEAR_LINES = 2
# One fault seen from two sides: before it runs, and in memory.
_FAMILIES = (
    frozenset({"held-tensors", "held-graph", "stateful-layer"}),
    frozenset({"retracing", "accumulating-functions"}),
    frozenset({"accumulating-models", "accumulating-functions", "accumulating-optimizers"}),
)
_NOT_GROWTH = frozenset({"killed", "near-limit"})
# Fewer calls are no habit, and say nothing on whether they help.
_LEAST_CALLS = 3
_MOST_PLACES = 3
# What a loop that makes models leaves behind between two fits.
_MADE_ANEW = frozenset({"accumulating-models", "accumulating-functions", "accumulating-optimizers"})
# What grows, by the code of the finding; it is not garbage.
_GROWING = {
    "retracing": "what grows here are traces, which are kept for good",
    "accumulating-functions": "what grows here are compiled functions, which are kept for good",
    "buffer-too-large": "what fills memory here is a buffer of the data pipeline",
    "data-in-memory": "what fills memory here is the data itself",
}
# The shape of a tensor of more than one number, as in "float32 (512, 64)".
_SHAPE = re.compile(r"\(\d")


def complete(
    findings: Sequence[Finding], hints: Sequence[Hinted], called: Sequence[Called]
) -> tuple[Finding, ...]:
    """Returns the findings with fixed statements, lint codes and answers to folklore."""
    fixed = [stream_instead(cite(_fix(finding), hints), hints) for finding in findings]
    return answer_folklore(fixed, hints, called)


def cite(finding: Finding, hints: Sequence[Hinted]) -> Finding:
    """Returns `finding` with the codes of the hints that told of it before anything ran.

    Those are hints of its own cause or a related one within two lines of it, or the only hint
    of its own cause in the file.
    """
    own = [one for one in hints if one.file == finding.file and one.cause is not None]
    same = [one for one in own if one.cause == finding.code]
    near = [one for one in own if _is_near(one, finding) and _is_related(one.cause, finding.code)]
    told = {one.code for one in (*near, *(same if len(same) == 1 else ()))}
    return replace(finding, lint=tuple(sorted(told | set(finding.lint)))) if told else finding


def stream_instead(finding: Finding, hints: Sequence[Hinted]) -> Finding:
    """Returns a finding on data in memory with the stream that lint wrote for its very files."""
    if finding.code != "data-in-memory":
        return finding
    own = [one for one in hints if one.file == finding.file and one.cause == finding.code]
    near = [one for one in own if _is_near(one, finding)] or (own if len(own) == 1 else [])
    fixes = [one.fix for one in near if one.fix is not None and "memfit.stream(" in one.fix]
    return replace(finding, fix=f"Stream it from disk: {fixes[0]}.") if fixes else finding


def answer_folklore(
    findings: Sequence[Finding], hints: Sequence[Hinted], called: Sequence[Called]
) -> tuple[Finding, ...]:
    """Returns `findings`, the first growth among them with notes on what does not help.

    Args:
        findings: What was found, the gravest first.
        hints: What lint said of the script.
        called: Calls of the script that bear on memory.
    """
    at = next((at for at, one in enumerate(findings) if _is_growth(one)), None)
    if at is None:
        return tuple(findings)
    growth = findings[at]
    notes = [one for one in _answers(growth, hints, called) if one not in growth.notes]
    answered = replace(growth, notes=(*growth.notes, *notes))
    return (*findings[:at], answered, *findings[at + 1 :])


def _is_near(hint: Hinted, finding: Finding) -> bool:
    return finding.line is not None and abs(hint.line - finding.line) <= _NEAR_LINES


def _is_related(cause: str | None, code: str) -> bool:
    return cause == code or any(cause in family and code in family for family in _FAMILIES)


def _is_growth(finding: Finding) -> bool:
    return finding.is_problem and finding.code not in _NOT_GROWTH


def _answers(growth: Finding, hints: Sequence[Hinted], called: Sequence[Called]) -> Iterator[str]:
    if growth.code != "uncollected-garbage":  # clear_session collects too
        yield from _on_collecting(growth, hints, called)
        yield from _on_clearing(growth, hints, called)
    yield from _on_deleting(hints)


def _on_collecting(
    growth: Finding, hints: Sequence[Hinted], called: Sequence[Called]
) -> Iterator[str]:
    what = f"{_growing(growth)}, not garbage."
    calls, told = _habit(called, "gc.collect"), _of_rule(hints, COLLECT_EACH_EPOCH)
    if calls:
        yield f"gc.collect() {_ran(calls)} and memory grew all the same: {what}"
    elif told:
        yield f"gc.collect() ({_places(told)}) takes some 0.2 s and frees only cycles: {what}"


def _growing(finding: Finding) -> str:
    if finding.evidence.get("holder"):
        return "what grows here is held by a name"
    return _GROWING.get(finding.code, "what grows here is still in use")


def _on_clearing(
    growth: Finding, hints: Sequence[Hinted], called: Sequence[Called]
) -> Iterator[str]:
    calls, told = _habit(called, "clear_session"), _of_rule(hints, CLEAR_EACH_EPOCH)
    resets = "resets the dtype policy and the seed without a word."
    in_fit = "frees nothing of a running fit, made epochs 3.4 times slower where measured, and"
    if calls and not told and growth.code in _MADE_ANEW:
        yield (
            f"keras.backend.clear_session() {_ran(calls)} and memory grew all the same: where "
            "measured, a model trained with TensorFlow left 9.7 MB without it and 8.0 MB with it. "
            f"It also {resets}"
        )
    elif calls:
        yield f"keras.backend.clear_session() {_ran(calls)}: it {in_fit} {resets}"
    elif told:
        yield f"keras.backend.clear_session() ({_places(told)}) {in_fit} {resets}"


def _on_deleting(hints: Sequence[Hinted]) -> Iterator[str]:
    told = _of_rule(hints, DELETE_IN_FUNCTION)
    if told:
        yield (
            f"{told[0].message} ({_places(told)}). Where measured, the peak was 759 MB with such "
            "a line and 752 MB without."
        )


def _of_rule(hints: Sequence[Hinted], rule: Rule) -> list[Hinted]:
    return [one for one in hints if one.code == rule.code]


def _habit(called: Sequence[Called], function: str) -> list[Called]:
    """Returns the newest count of each line that calls `function`, the most calls first."""
    newest = {(one.file, one.line): one for one in called if one.function.endswith(function)}
    if sum(one.calls for one in newest.values()) < _LEAST_CALLS:
        return []
    return sorted(newest.values(), key=lambda one: -one.calls)


def _ran(calls: Sequence[Called]) -> str:
    return f"ran {sum(one.calls for one in calls):,} times ({_places(calls)})"


def _places(entries: Sequence[Called | Hinted]) -> str:
    places = list(dict.fromkeys(f"{one.file}:{one.line}" for one in entries))
    more = ["..."] if len(places) > _MOST_PLACES else []
    return ", ".join([*places[:_MOST_PLACES], *more])


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
