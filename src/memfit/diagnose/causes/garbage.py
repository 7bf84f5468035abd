"""Garbage that waits for a collector that is off, frozen or too late."""

from memfit.diagnose.causes.case import Case
from memfit.diagnose.causes.finding import Finding
from memfit.record.evidence import Called, Look, RemedyTrial
from memfit.units import format_size

_LEAST_FREED_BYTES = 8_000_000
_LEAST_SHARE = 0.3


def find_garbage(case: Case) -> list[Finding]:
    """Returns a finding if the collector is off and a collection gave back much of the growth."""
    return _find(case) if _is_off(case) else []


def find_late_garbage(case: Case) -> list[Finding]:
    """Returns a finding if it is on, and a collection gave back much of the growth all the same."""
    return _find(case) if not _is_off(case) else []


def _is_off(case: Case) -> bool:
    return _was_seen(case, "collector_off") or _was_seen(case, "frozen")


def _was_seen(case: Case, number: str) -> bool:
    return any(one.numbers.get(number) for one in case.recording.of(Look))


def _find(case: Case) -> list[Finding]:
    trials = [one for one in case.recording.of(RemedyTrial) if one.remedy == "collect"]
    if case.growth is None or not trials:
        return []
    best = max(trials, key=_freed)
    risen_bytes = case.risen_between(_begin_t_s(case), best.t_s - best.cost_s)
    share = _freed(best) / max(risen_bytes, 1)
    is_off, is_frozen = _was_seen(case, "collector_off"), _was_seen(case, "frozen")
    least = _LEAST_FREED_BYTES if not is_off else _LEAST_FREED_BYTES / 2
    if _freed(best) < least or share < _LEAST_SHARE:
        return []
    calls = case.newest(Called, lambda one: (one.function, one.line))
    call = next((one for one in calls if one.function in _SWITCHES), None)
    file, line = (call.file, call.line) if call else case.busiest_line()
    examples = ", ".join(f"{count:,} {name}" for name, count in best.examples.items())
    state = (
        "The garbage collector is off"
        if is_off
        else "gc.freeze() hides objects from the garbage collector"
        if is_frozen and call is not None
        else "The garbage collector runs too rarely"
    )
    return [
        Finding(
            code="uncollected-garbage",
            message=(
                f"{state}: objects that refer to each other accumulate. One collection freed "
                f"{best.objects:,} objects and {format_size(_freed(best))} ({examples})."
            ),
            confidence="certain" if is_off else "likely",
            fix="Leave the collector on, or call gc.collect() at the end of each epoch."
            if is_off or is_frozen
            else "Call gc.collect() at the end of each round.",
            evidence={
                "freed_bytes": _freed(best),
                "freed_objects": best.objects,
                "collector": "off" if is_off else "on",
            },
            file=file,
            line=line,
            before=call.statement if call else None,
            share=min(share, 1.0),
            growth_bytes=_freed(best),
        )
    ]


_SWITCHES = ("gc.disable", "gc.set_threshold", "gc.freeze")


def _begin_t_s(case: Case) -> float:
    looks = case.recording.of(Look)
    return looks[0].t_s if looks else case.recording.begin_t_s


def _freed(trial: RemedyTrial) -> int:
    return max(trial.before_bytes - trial.after_bytes, 0)
