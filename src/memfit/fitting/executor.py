"""Does what a search asks for: installs levers, runs trial steps, and leaves the plan installed."""

import contextlib
from dataclasses import replace

from memfit.errors import BudgetError
from memfit.fitting.attempt import Attempt, Inspection, Measurement
from memfit.fitting.exploration import Facts
from memfit.fitting.headroom import Headroom
from memfit.fitting.installed_levers import InstalledLevers
from memfit.fitting.known_sizes import KnownSize
from memfit.fitting.model_facts import find_facts
from memfit.fitting.plan import Plan, Refusal
from memfit.fitting.request import Request
from memfit.fitting.search import search
from memfit.fitting.trial_steps import Prober


def choose(
    prober: Prober, headroom: Headroom, request: Request, changes: contextlib.ExitStack
) -> Plan:
    """Returns the plan, with the model made ready to train by it.

    Args:
        prober: Runs steps of a built and compiled model.
        headroom: What may be used.
        request: What the user asks for.
        changes: Gets what undoes the changes.

    Raises:
        BudgetError: Nothing fits; says the smallest budget that would do.
    """
    known = KnownSize.of(prober.model, prober.batch, headroom.budget_bytes, request)
    facts = find_facts(prober, headroom, request, known.size)
    installed = InstalledLevers(prober.model, request.batchnorm, prober.gauge, headroom.step_bytes)
    changes.callback(installed.undo)
    plan = _execute(facts, prober, installed)
    known.keep(plan.size or plan.batch_size)
    return plan


def _execute(facts: Facts, prober: Prober, installed: InstalledLevers) -> Plan:
    """Runs the search to its end."""
    attempts = search(facts)
    measurement: Measurement | None = None
    while True:
        # A step runs the user's code, which may raise StopIteration too: it stays outside.
        try:
            attempt = next(attempts) if measurement is None else attempts.send(measurement)
        except StopIteration as ended:
            result: Plan | Refusal = ended.value
            break
        measurement = _measure(attempt, prober, installed)
    if isinstance(result, Refusal):
        raise BudgetError(str(result))
    installed.install(result.levers)
    return result


def _measure(attempt: Attempt, prober: Prober, installed: InstalledLevers) -> Measurement:
    if not installed.install(attempt.levers):
        return Measurement(0, 0, inspection=Inspection(is_possible=False))
    if attempt.num_samples:
        return prober.try_step(attempt.size, attempt.num_samples)
    measured = prober.look()
    inspection = replace(measured.inspection or Inspection(), changes=installed.texts)
    return replace(measured, inspection=inspection)
