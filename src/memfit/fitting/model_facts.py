"""What a search must know of a model and its data: above all, whether batches can be cut."""

from memfit.errors import UsageError
from memfit.fitting.exploration import Facts
from memfit.fitting.graph.batchnorm import explain_batchnorm, find_batchnorm
from memfit.fitting.headroom import Headroom
from memfit.fitting.levers.cuttable_models import check_model, check_whole, has_fixed_batch
from memfit.fitting.request import Request
from memfit.fitting.trial_steps import Prober


def find_facts(
    prober: Prober, headroom: Headroom, request: Request, remembered_size: int | None
) -> Facts:
    """Returns what is known before the first trial step.

    Args:
        prober: Has a compiled model and a batch of its data.
        headroom: What may be used.
        request: What the user asks for.
        remembered_size: The size of a micro-batch that an earlier run found, if there was one.
    """
    return Facts(
        batch_size=prober.batch_size,
        headroom=headroom,
        place=prober.gauge.place,
        bend=prober.gauge.bend,
        can_reset=prober.gauge.can_reset,
        why_whole=_find_why_whole(prober, request),
        has_fixed_batch=prober.why_uncut is not None or has_fixed_batch(prober.model),
        is_exact=request.batchnorm == "exact" and bool(find_batchnorm(prober.model)),
        allows_precision="precision" in request.allow,
        allows_unverified="unverified" in request.allow,
        remembered_size=remembered_size,
    )


def _find_why_whole(prober: Prober, request: Request) -> str | None:
    """Why batches cannot be cut; `None` if they can, as far as can be told without a proof."""
    if prober.why_uncut is not None:
        return prober.why_uncut
    try:
        check_whole(prober.model)
        check_model(prober.model)
    except UsageError as error:
        return str(error)
    layers = find_batchnorm(prober.model)
    if layers and request.batchnorm is None:
        return explain_batchnorm(layers)
    return None
