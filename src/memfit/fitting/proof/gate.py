"""Whether a lever may train a model: proved on its first batch, remembered, or refused."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from memfit.backends.micro_batches.batch_parts import explain_rows, name_leaves
from memfit.backends.out_of_memory import is_out_of_memory
from memfit.errors import UsageError
from memfit.fitting.proof.proof import Lever, prove
from memfit.fitting.proof.remembered_verdicts import find_verdict, remember_verdict
from memfit.fitting.proof.rows import MOST_ROWS, count_rows
from memfit.fitting.proof.verdict import Outcome, Verdict
from memfit.messages import say

UNVERIFIED = "unverified"
_NO_MEMORY = (
    "The training cannot be compared: not even two samples of the first batch fit into memory at "
    f'once. Use a smaller model or smaller samples, or give allow=("{UNVERIFIED}",) to train all '
    "the same."
)
# Of a lever that leaves batches whole, it is not the samples that are at fault.
_NOT_ALONE = (
    "The training would not be the same: on the first batch, a step with this change left other "
    "gradients, variables or metrics than one without. Train without it, or look for a layer that "
    "does more when it runs twice, such as one that counts its calls."
)


def check_same(
    model: Any,
    batch: Any,
    lever: Lever,
    *,
    allow: Sequence[str] = (),
    most_rows: int = MOST_ROWS,
) -> Verdict:
    """Returns what a proof found; remembered for the model as it is compiled now.

    Args:
        model: A built and compiled model.
        batch: Inputs, targets and weights of a batch of its data.
        lever: What is to be proved.
        allow: What may go on without a proof: `"unverified"`.
        most_rows: How many rows fit into a whole step.

    Raises:
        UsageError: The lever would train something else, or that cannot be proved and
            `"unverified"` is not in `allow`.
    """
    check_rows(batch)
    if lever.cuts and "call" in vars(model):
        lever = _on_top_of(model, lever)
    verdict = find_verdict(model, batch, lever)
    if verdict is None:
        verdict = _prove_if_it_fits(model, batch, lever, min(most_rows, MOST_ROWS))
        remember_verdict(model, batch, lever, verdict)
    if verdict.is_same:
        return verdict
    if verdict.outcome is Outcome.DIFFERENT or UNVERIFIED not in allow:
        is_other = verdict.outcome is Outcome.DIFFERENT and not lever.cuts
        raise UsageError(_NOT_ALONE if is_other else verdict.why)
    reason = verdict.why.partition(". ")[0].rstrip(".")
    say(f'trained without a proof, as allow=("{UNVERIFIED}",) says. {reason}.', wraps=True)
    return verdict


def _on_top_of(model: Any, lever: Lever) -> Lever:
    """The lever together with what is in the place of the model's `call`, such as recomputation."""
    call = vars(model)["call"]

    @contextlib.contextmanager
    def install(size: int, collects: bool) -> Iterator[None]:
        object.__setattr__(model, "call", call)
        try:
            with lever.install(size, collects):
                yield
        finally:
            vars(model).pop("call", None)

    return replace(lever, install=install, name="")  # another call is another lever: not kept


def _prove_if_it_fits(model: Any, batch: Any, lever: Lever, most_rows: int) -> Verdict:
    number = count_rows(batch)
    try:
        return prove(model, batch, lever, most_rows)
    except Exception as error:
        if is_out_of_memory(error):
            return Verdict(Outcome.UNCLEAR, _NO_MEMORY)
        if lever.cuts or number <= most_rows:
            raise
    return prove(model, batch, lever, number)  # the model may take whole batches only


def check_allow(allow: Any) -> None:
    """Raises if this is no list of what may go on without a proof."""
    is_list = isinstance(allow, Sequence) and not isinstance(allow, str)
    if not is_list or any(one != UNVERIFIED for one in allow):
        raise UsageError(
            f'allow must be a list that contains nothing but "{UNVERIFIED}". '
            f"Received: allow={allow!r}."
        )


def check_rows(batch: Any) -> None:
    """Raises if the arrays of a batch do not have its samples along their first axis."""
    shapes = {name: _read_shape(leaf) for name, leaf in name_leaves(batch).items()}
    lengths = {shape[0] if shape else None for shape in shapes.values()}
    if len(lengths) != 1 or lengths & {None, 0}:
        raise UsageError(explain_rows(", ".join(map(_describe, shapes.items())) or "no arrays"))


def _read_shape(leaf: Any) -> Any:
    """The shape of an array whose rows can be taken; a sparse one has none to take."""
    return getattr(leaf, "shape", None) if hasattr(leaf, "__getitem__") else None


def _describe(named: tuple[str, Any]) -> str:
    name, shape = named
    return f"{name} {'without rows to take' if shape is None else tuple(shape)}"
