"""A compiled function that is traced or compiled again and again."""

from memfit.diagnose.causes.case import Case, is_continuing
from memfit.diagnose.causes.finding import Finding
from memfit.record.evidence import Retraced

_FIXES = {
    "tf.function": (
        "Pass tensors instead of Python numbers (tf.constant(step)), pad shapes to a few sizes, "
        "and pass the same function object at each call, not a new one."
    ),
    "XLA": "XLA compiles for every shape: pad to a few sizes, or leave jit_compile off here.",
    "jax.jit": (
        "Pass what changes as an array, not as a static argument or in a closure, and pad shapes "
        "to a few sizes."
    ),
    "torch.compile": (
        "Let it compile for all sizes at once, torch.compile(..., dynamic=True), or pad to a few "
        "sizes."
    ),
}
_PER_FUNCTION = "Create the function once, before the loop; each new one is compiled again."
_LEAST_EXECUTABLES = 4
_MANY_EXECUTABLES = 10


def find_retracing(case: Case) -> list[Finding]:
    """Returns a finding for each line at which a function was still being compiled."""
    if case.growth is None:
        return []
    newest = case.newest(Retraced, lambda one: (one.compiler, one.name, one.file, one.line))
    at_lines: dict[tuple[str | None, int | None], list[Retraced]] = {}
    for one in newest:
        at_lines.setdefault((one.file, one.line), []).append(one)
    models = {(one.file, one.line) for one in case.made("model", "compilation")}
    findings = [
        _finding(max(group, key=_rank), sum(map(_more, group)))
        for group in at_lines.values()
        if not (models and all(is_remade(one) and not one.name for one in group))
    ]
    return sorted(findings, key=lambda one: -int(one.evidence["more"] or 0))


def find_many_executables(case: Case) -> list[Finding]:
    """Returns the same where compiled code accumulates in most looks and no trace is counted."""
    rise = case.rise("executables")
    is_steady = rise is not None and rise.num_rises >= rise.num_looks / 2
    is_much = rise is not None and rise.more >= _MANY_EXECUTABLES
    is_traced = bool(case.newest(Retraced, lambda one: (one.name, one.line)))
    return find_executables(case) if is_steady and is_much and not is_traced else []


def find_executables(case: Case) -> list[Finding]:
    """Returns a finding if compiled code accumulates while no trace is counted: XLA per shape."""
    rise = case.rise("executables")
    if case.growth is None or rise is None or not is_continuing(rise, _LEAST_EXECUTABLES):
        return []
    file, line = case.busiest_line()
    return [
        Finding(
            code="retracing",
            message=(
                f"Compiled programs rose from {rise.before:,} to {rise.now:,}, with no new trace "
                "of any function. XLA compiles the same function again for every shape of its "
                "inputs, and keeps every version."
            ),
            confidence="likely",
            fix=_FIXES["XLA"],
            evidence={
                "executables_before": rise.before,
                "executables_now": rise.now,
                "more": rise.more,
            },
            file=file,
            line=line,
        )
    ]


def is_remade(one: Retraced) -> bool:
    """Whether each trace was of a new function, not of the same one again."""
    return one.functions > max(1, one.traces // 2)


def _more(one: Retraced) -> int:
    return one.traces - one.traces_before


def _rank(one: Retraced) -> tuple[bool, int]:
    return bool(one.changed), _more(one)


def _finding(one: Retraced, more: int) -> Finding:
    name = one.name or "Keras's own step"
    if is_remade(one):
        how = f"{one.functions} functions {name} were created and compiled at this line"
    else:
        how = f"{name} was compiled {_more(one)} more times at this line, {one.traces} in total"
    changed = f" What changed: {one.changed}." if one.changed else ""
    return Finding(
        code="retracing",
        message=f"{how} ({one.compiler}); every version stays in memory.{changed}",
        confidence="certain" if one.changed else "likely",
        fix=_PER_FUNCTION if is_remade(one) else _FIXES.get(one.compiler, _FIXES["tf.function"]),
        evidence={
            "function": one.name,
            "defined_at": one.defined_at,
            "compiler": one.compiler,
            "traces_before": one.traces_before,
            "traces_now": one.traces,
            "functions": one.functions,
            "changed": one.changed,
            "more": more,
        },
        file=one.file,
        line=one.line,
        before=one.statement,
    )
