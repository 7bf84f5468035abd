"""Memory that a name in the person's own code keeps: a list, an attribute, a cache, an array."""

from collections.abc import Sequence
from dataclasses import dataclass

from memfit.diagnose.finding import Finding
from memfit.diagnose.growth import Growth
from memfit.diagnose.series import Point
from memfit.record.entries import Holding
from memfit.units import format_size

_LEAST_SHARE = 0.1
_CERTAIN_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class _Family:
    """A code, the words for what is kept, and what to do instead."""

    code: str
    things: str
    fix: str


_HELD_TENSORS = _Family(
    "held-tensors",
    "arrays or tensors",
    "Keep only what you need: float(...) of a loss, a mean, or the last few with "
    "collections.deque(maxlen=...); write the rest to disk.",
)
_FAMILIES = {
    "array": _HELD_TENSORS,
    "tensor": _HELD_TENSORS,
    "variable": _HELD_TENSORS,
    "text": _HELD_TENSORS,
    "graph": _Family(
        "held-graph",
        "tensors with the record of how they were computed",
        "Take the number out before you keep it: loss.item(), or loss.detach() for a tensor.",
    ),
    "tape": _Family(
        "held-graph",
        "gradient tapes",
        "Let each tape go after its gradient(...); open it inside the loop.",
    ),
    "model": _Family(
        "accumulating-models",
        "models",
        "Keep the scores and let the model go; save it to disk if you need it again.",
    ),
    "history": _Family(
        "accumulating-models",
        "History objects, each of which keeps its model",
        "Keep the numbers: histories.append(model.fit(...).history)",
    ),
    "function": _Family(
        "accumulating-functions",
        "compiled functions",
        "Make the function once, before the loop, and give it what changes as a tensor.",
    ),
    "optimizer": _Family(
        "accumulating-optimizers", "optimizers", "Make the optimizer once, before the loop."
    ),
    "dataset": _Family(
        "accumulating-datasets", "datasets", "Build the dataset once, before the loop."
    ),
    "iterator": _Family(
        "accumulating-iterators", "iterators", "Let each iterator go when its pass is over."
    ),
    "writer": _Family(
        "accumulating-writers", "summary writers", "Make one writer, and close() it at the end."
    ),
    "figure": _Family(
        "accumulating-figures", "figures", "Close each one after saving it: plt.close(figure)"
    ),
    "thread": _Family("accumulating-threads", "threads", "Join each thread, or use one pool."),
    "file": _Family("accumulating-files", "open files", "Open files in a with block."),
}


def find_held(
    holdings: Sequence[Holding], points: Sequence[Point], growth: Growth | None
) -> list[Finding]:
    """Returns a finding for each name that keeps a good part of what memory grew by."""
    if growth is None or not holdings:
        return []
    last_t_s = holdings[-1].t_s
    newest = [one for one in holdings if one.t_s == last_t_s and one.item_kind in _FAMILIES]
    total_bytes = _risen_bytes(points, holdings[-1].since_t_s, last_t_s)
    findings = [_finding(one, total_bytes) for one in newest if _counts(one, total_bytes)]
    return sorted(findings, key=lambda finding: -float(finding.evidence["growth_bytes"] or 0))


def _risen_bytes(points: Sequence[Point], begin_t_s: float, end_t_s: float) -> int:
    during = [point.held_bytes for point in points if begin_t_s - 1 <= point.t_s <= end_t_s + 1]
    return max(during[-1] - during[0], 1) if during else 1


def _counts(holding: Holding, total_bytes: int) -> bool:
    """A share of the growth; objects whose bytes cannot be seen count by their number."""
    is_counted = holding.growth_bytes >= _LEAST_SHARE * total_bytes
    return is_counted or (holding.growth_bytes == 0 and _family(holding) is not _HELD_TENSORS)


def _family(holding: Holding) -> _Family:
    return _FAMILIES[holding.item_kind]


def _finding(holding: Holding, total_bytes: int) -> Finding:
    family = _family(holding)
    share = min(holding.growth_bytes / total_bytes, 1.0)
    return Finding(
        code=family.code,
        message=_message(holding, family, share),
        confidence="certain" if share >= _CERTAIN_SHARE else "likely",
        fix=_fix(holding, family),
        evidence={
            "holder": holding.owner,
            "container": holding.container,
            "length_before": holding.length_before,
            "length_now": holding.length,
            "growth_bytes": holding.growth_bytes,
            "share": round(share, 3) if holding.growth_bytes else None,
            "example": holding.example,
        },
        file=holding.file,
        line=holding.line,
    )


def _message(holding: Holding, family: _Family, share: float) -> str:
    name = f"{holding.owner} keeps {family.things}"
    if holding.container == "array":
        before, now = format_size(holding.length_before), format_size(holding.length)
        what = f"{holding.owner} is an array that grew from {before} to {now}"
    else:
        what = (
            f"{name}: a {holding.container} that went from {holding.length_before:,} to "
            f"{holding.length:,} ({holding.example})"
        )
    if not holding.growth_bytes:
        return f"{what}."
    return f"{what}, {format_size(holding.growth_bytes)} or {share:.0%} of the growth."


def _fix(holding: Holding, family: _Family) -> str:
    if holding.statement is None:
        return family.fix
    return f"{holding.statement}\n  {family.fix}"
