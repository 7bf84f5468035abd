"""Adds to each finding what is known of the user's own lines: the fix, and what lint says."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from memfit.diagnose.causes.catalogue import cause_of
from memfit.diagnose.causes.finding import Finding
from memfit.fixes.statement import closing, fix_statement
from memfit.lint.rules.folklore import (
    CLEAR_EACH_EPOCH,
    COLLECT_EACH_EPOCH,
    DELETE_IN_FUNCTION,
)
from memfit.lint.rules.rule import Rule
from memfit.record.evidence import Called, Hinted
from memfit.record.recording import Recording

# A hint so near stands at the same statement: a call, and the loop or the block around it.
_NEAR_LINES = 2
# Fewer calls are no habit, and say nothing on whether they help.
_LEAST_CALLS = 3
_MOST_PLACES = 3
# The shape of a tensor of more than one number, as in "float32 (512, 64)".
_SHAPE = re.compile(r"\(\d")


def complete(findings: Sequence[Finding], recording: Recording) -> tuple[Finding, ...]:
    """Returns the findings with fixed statements, lint codes and answers to folklore."""
    hints, called = recording.of(Hinted), recording.of(Called)
    fixed = [stream_instead(cite(_fix(finding), hints), hints) for finding in findings]
    return answer_folklore(fixed, hints, called)


def cite(finding: Finding, hints: Sequence[Hinted]) -> Finding:
    """Returns `finding` with the codes of the hints that name it before anything runs.

    Those are hints of its own cause or a related one within two lines of it, or the only hint
    of its own cause in the file.
    """
    own = [one for one in hints if one.file == finding.file and one.cause is not None]
    same = [one for one in own if one.cause == finding.code]
    near = [one for one in own if _is_near(one, finding) and _is_related(one.cause, finding.code)]
    named = {one.code for one in (*near, *(same if len(same) == 1 else ()))}
    return replace(finding, lint=tuple(sorted(named | set(finding.lint)))) if named else finding


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
    """Returns `findings`, the first growth among them with notes on remedies that do not help.

    Args:
        findings: What was found, the most severe first.
        hints: What lint says of the script.
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
    return cause == code or cause in cause_of(code).related


def _is_growth(finding: Finding) -> bool:
    return finding.is_problem and cause_of(finding.code).verdict is None


def _answers(growth: Finding, hints: Sequence[Hinted], called: Sequence[Called]) -> Iterator[str]:
    if growth.code != "uncollected-garbage":  # clear_session collects too
        yield from _on_collecting(growth, hints, called)
        yield from _on_clearing(growth, hints, called)
    yield from _on_deleting(hints)


def _on_collecting(
    growth: Finding, hints: Sequence[Hinted], called: Sequence[Called]
) -> Iterator[str]:
    what = f"{_growing(growth)}, not garbage."
    calls, named = _habit(called, "gc.collect"), _of_rule(hints, COLLECT_EACH_EPOCH)
    if calls:
        yield f"gc.collect() {_ran(calls)}, but memory still grew: {what}"
    elif named:
        yield f"gc.collect() ({_places(named)}) takes about 0.2 s and frees only cycles: {what}"


def _growing(finding: Finding) -> str:
    if finding.holder is not None:
        return "the growth is held by a name"
    return f"the growth is {cause_of(finding.code).content}"


def _on_clearing(
    growth: Finding, hints: Sequence[Hinted], called: Sequence[Called]
) -> Iterator[str]:
    calls, named = _habit(called, "clear_session"), _of_rule(hints, CLEAR_EACH_EPOCH)
    resets = "silently resets the dtype policy and the seed."
    in_fit = "frees nothing during fit, made epochs 3.4 times slower in our test, and"
    if calls and not named and cause_of(growth.code).made_by_loops:
        yield (
            f"keras.backend.clear_session() {_ran(calls)}, but memory still grew: in our test, "
            "each model trained with TensorFlow left 9.7 MB without it and 8.0 MB with it. "
            f"It also {resets}"
        )
    elif calls:
        yield f"keras.backend.clear_session() {_ran(calls)}: it {in_fit} {resets}"
    elif named:
        yield f"keras.backend.clear_session() ({_places(named)}) {in_fit} {resets}"


def _on_deleting(hints: Sequence[Hinted]) -> Iterator[str]:
    named = _of_rule(hints, DELETE_IN_FUNCTION)
    if named:
        yield (
            f"{named[0].message} ({_places(named)}). In our test, the peak was 759 MB with such "
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
        holder=finding.holder or str(evidence.get("function", "")),
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
