"""A compiled function that is traced or compiled again and again."""

from collections.abc import Sequence

from memfit.diagnose.finding import Finding
from memfit.diagnose.growth import Growth
from memfit.record.entries import Retraced

_PER_CALL = (
    "Give it tensors instead of Python numbers (tf.constant(step), jnp.asarray(step)), pad shapes "
    "to a few sizes, and keep what is static the same from call to call."
)
_PER_FUNCTION = "Make the function once, before the loop; a new one is traced anew every time."


def find_retracing(retraced: Sequence[Retraced], growth: Growth | None) -> list[Finding]:
    """Returns a finding for each function that was still being traced while memory grew."""
    if growth is None or not retraced:
        return []
    last_t_s = retraced[-1].t_s
    newest = [one for one in retraced if one.t_s == last_t_s]
    return [_finding(one) for one in sorted(newest, key=lambda one: -_more(one))]


def _more(one: Retraced) -> int:
    return one.traces - one.traces_before


def _finding(one: Retraced) -> Finding:
    is_remade = one.functions > 1
    how = (
        f"{one.functions} functions {one.name} were made at one line and traced {one.traces} times"
        if is_remade
        else f"{one.name} was traced {_more(one)} times more, {one.traces} in all"
    )
    return Finding(
        code="retracing",
        message=f"{how}; every trace stays in memory.",
        confidence="likely",
        fix=_PER_FUNCTION if is_remade else _PER_CALL,
        evidence={
            "function": one.name,
            "traces_before": one.traces_before,
            "traces_now": one.traces,
            "functions": one.functions,
            **{f"signature_{number}": text for number, text in enumerate(one.signatures, 1)},
        },
        file=one.file,
        line=one.line,
    )
