"""Memory that a name in the user's own code keeps: a list, an attribute, a cache, an array."""

from dataclasses import dataclass

from memfit.diagnose.causes.case import Case
from memfit.diagnose.causes.finding import Finding
from memfit.record.evidence import Holding
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
_STATE = _Family(
    "stateful-layer",
    "arrays or tensors",
    "Give the state a fixed size (a running mean, a ring of the last n), or reset it at the end "
    "of each epoch: reset_state().",
)
_VIEWS = _Family(
    "held-tensors",
    "small parts of large arrays, each of which keeps the whole array alive",
    "Keep a copy of the part: .copy() in numpy, .clone() in torch.",
)
_FAMILIES = {
    "array": _HELD_TENSORS,
    "view": _VIEWS,
    "torch view": _VIEWS,
    "tensor": _HELD_TENSORS,
    "variable": _HELD_TENSORS,
    "text": _HELD_TENSORS,
    "object": _Family(
        "held-tensors",
        "Python objects",
        "Keep only what you need: a mean, a count, or the last few with "
        "collections.deque(maxlen=...); write the rest to disk.",
    ),
    "graph": _Family(
        "held-graph",
        "tensors with the record of how they were computed",
        "Take the number out before you keep it: loss.item(), or loss.detach() for a tensor.",
    ),
    "tape": _Family(
        "held-graph",
        "gradient tapes",
        "Open each tape inside the loop and drop it after gradient(...).",
    ),
    "model": _Family(
        "accumulating-models",
        "models",
        "Keep the scores and drop the model; save it to disk if you need it again. Train each "
        "inside with memfit.session(): TensorFlow keeps the graphs of a model even when nothing "
        "else holds it.",
    ),
    "history": _Family(
        "accumulating-models",
        "History objects, each of which keeps its model",
        "Keep the numbers, model.fit(...).history, and put the body of the loop into "
        "with memfit.session(): without it the models wait for the garbage collector, and "
        "TensorFlow keeps their graphs.",
    ),
    "function": _Family(
        "accumulating-functions",
        "compiled functions",
        "Create the function once, before the loop, and pass what changes as a tensor.",
    ),
    "optimizer": _Family(
        "accumulating-optimizers", "optimizers", "Create the optimizer once, before the loop."
    ),
    "dataset": _Family(
        "accumulating-datasets", "datasets", "Build the dataset once, before the loop."
    ),
    "iterator": _Family(
        "accumulating-iterators", "iterators", "Drop each iterator when its pass is over."
    ),
    "writer": _Family(
        "accumulating-writers", "summary writers", "Create one writer, and close() it at the end."
    ),
    "figure": _Family(
        "accumulating-figures", "figures", "Close each one after saving it: plt.close(figure)"
    ),
    "thread": _Family("accumulating-threads", "threads", "Join each thread, or use one pool."),
    "file": _Family("accumulating-files", "open files", "Open files in a with block."),
}


def find_held(case: Case) -> list[Finding]:
    """Returns a finding for each name that keeps a good part of what memory grew by."""
    if case.growth is None:
        return []
    newest = [
        one for one in case.newest(Holding, lambda one: one.owner) if one.item_kind in _FAMILIES
    ]
    return [_finding(one, _share(case, one)) for one in newest if _counts(case, one)]


def find_views(case: Case) -> list[Finding]:
    """Returns a finding for many small tensors that may each keep a large one alive."""
    if case.growth is None:
        return []
    small = [
        one
        for one in case.newest(Holding, lambda one: one.owner)
        if one.item_kind == "tensor" and one.container != "array" and not _counts(case, one)
    ]
    if not small:
        return []
    most = max(small, key=lambda one: one.length - one.length_before)
    return [
        Finding(
            code=_HELD_TENSORS.code,
            message=(
                f"{most.owner} keeps {most.length:,} small tensors ({most.example}). A part of a "
                "tensor can keep the whole tensor alive, and nothing else was found to grow."
            ),
            confidence="possible",
            fix="Keep a copy of the part: tf.identity(part), part.clone(), or .numpy().copy().",
            evidence=_evidence(most, None),
            file=most.file,
            line=most.line,
            before=most.statement,
        )
    ]


def _share(case: Case, holding: Holding) -> float | None:
    """Its part of what memory rose by since it was first seen, or of the rate of growth.

    The first is too small where warm-up fell into that time, so the larger one counts.
    """
    if not holding.growth_bytes or case.growth is None:
        return None
    seen_s = max(holding.t_s - holding.since_t_s, 1e-3)
    of_rise = holding.growth_bytes / case.risen_between(holding.since_t_s, holding.t_s)
    of_rate = holding.growth_bytes / seen_s / case.growth.bytes_per_s
    epochs = case.epochs_between(holding.since_t_s, holding.t_s)
    per_epoch = case.growth.bytes_per_epoch
    of_epochs = holding.growth_bytes / epochs / per_epoch if epochs and per_epoch else 0.0
    return min(max(of_rise, of_rate, of_epochs), 1.0)


def _counts(case: Case, holding: Holding) -> bool:
    """A share of the growth; objects whose bytes cannot be seen count by their number."""
    is_counted = (_share(case, holding) or 0.0) >= _LEAST_SHARE
    return is_counted or (holding.growth_bytes == 0 and _family(holding) is not _HELD_TENSORS)


def _family(holding: Holding) -> _Family:
    family = _FAMILIES[holding.item_kind]
    return _STATE if family is _HELD_TENSORS and holding.is_state else family


def _finding(holding: Holding, share: float | None) -> Finding:
    family = _family(holding)
    return Finding(
        code=family.code,
        message=_message(holding, family, share),
        confidence="certain" if (share or 0) >= _CERTAIN_SHARE else "likely",
        fix=family.fix,
        evidence=_evidence(holding, share),
        holder=holding.owner,
        file=holding.file,
        line=holding.line,
        before=holding.statement,
        growth_bytes=holding.growth_bytes or None,
        share=share,
    )


def _evidence(holding: Holding, share: float | None) -> dict[str, float | int | str | None]:
    return {
        "container": holding.container,
        "length_before": holding.length_before,
        "length_now": holding.length,
        "growth_bytes": holding.growth_bytes,
        "share": None if share is None else round(share, 3),
        "example": holding.example,
        "item_kind": holding.item_kind,
    }


def _message(holding: Holding, family: _Family, share: float | None) -> str:
    owner = holding.owner
    if holding.container == "array":
        before, now = format_size(holding.length_before), format_size(holding.length)
        what = f"{owner} is an array that grew from {before} to {now}"
    elif holding.container == "graph":
        what = (
            f"{owner} keeps the record of every step that it was computed from: "
            f"{holding.length_before:,} steps at first, {holding.length:,} now"
        )
    else:
        what = (
            f"{owner} keeps {family.things}: a {holding.container} that grew from "
            f"{holding.length_before:,} to {holding.length:,} ({holding.example})"
        )
    if not holding.growth_bytes or share is None:
        return f"{what}."
    return f"{what}, {format_size(holding.growth_bytes)} or {share:.0%} of the growth."
