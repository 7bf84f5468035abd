"""Does what a search asks for: installs levers, runs trial steps, and leaves the plan installed."""

import contextlib
from dataclasses import replace

from memfit.errors import BudgetError, UsageError
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
        prober: Runs steps of a compiled model.
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
    execution = _Execution(prober, installed, request)
    why_whole = None
    try:
        plan = execution.run(facts)
    except _SmallerBatchError as error:
        why_whole = str(error)
    if why_whole is not None:  # out of the block: the error holds what its step had
        plan = execution.run(replace(facts, why_whole=why_whole, has_fixed_batch=True))
    known.keep(plan.size or plan.batch_size)
    return plan


class _SmallerBatchError(Exception):
    """The model raised on fewer samples than its batches have."""


class _Execution:
    """Runs searches to their end.

    Args:
        prober: Runs steps.
        installed: The levers they run with.
        request: What the user asks for.
    """

    def __init__(self, prober: Prober, installed: InstalledLevers, request: Request) -> None:
        self._prober = prober
        self._installed = installed
        self._request = request

    def run(self, facts: Facts) -> Plan:
        attempts = search(facts)
        measurement: Measurement | None = None
        while True:
            # A step runs the user's code, which may raise StopIteration too: it stays outside.
            try:
                attempt = next(attempts) if measurement is None else attempts.send(measurement)
            except StopIteration as ended:
                result: Plan | Refusal = ended.value
                break
            measurement = self._prove(attempt) if attempt.is_proof else self._measure(attempt)
        if isinstance(result, Refusal):
            raise BudgetError(str(result))
        self._installed.install(result.levers)
        return result

    def _measure(self, attempt: Attempt) -> Measurement:
        if not self._installed.install(attempt.levers):
            return Measurement(0, 0, inspection=Inspection(is_possible=False))
        if attempt.num_samples:
            return self._try_step(attempt)
        measured = self._prober.look()
        inspection = replace(measured.inspection or Inspection(), changes=self._installed.texts)
        return replace(measured, inspection=inspection)

    def _try_step(self, attempt: Attempt) -> Measurement:
        batch_size = self._prober.batch_size
        try:
            return self._prober.try_step(attempt.size, attempt.num_samples)
        except Exception as error:
            if attempt.size == batch_size:
                raise  # as plain `fit` would
            self._installed.undo()
            self._prober.restore()
            kind = type(error).__name__
            raise _SmallerBatchError(
                f"Batches of this model cannot be cut: with {attempt.size} samples instead of "
                f"{batch_size} it raises {kind}: {error}".partition("\n")[0]
            ) from error

    def _prove(self, attempt: Attempt) -> Measurement:
        """Proves that the levers leave the training the same; none is installed then."""
        prober = self._prober
        self._installed.undo()
        prober.restore()
        try:
            verdict = self._installed.prove(
                attempt.levers, prober.batch, self._request.allow, attempt.num_samples
            )
        except UsageError as error:
            found = Inspection(is_possible=False, why=str(error))
        except Exception as error:  # noqa: BLE001  # whole batches without levers are left
            why = f"On some rows of a batch this model raises {type(error).__name__}: {error}"
            found = Inspection(is_possible=False, why=why.partition("\n")[0])
        else:
            found = Inspection(changes=(str(verdict),) if verdict.is_same else ())
        return Measurement(0, prober.gauge.read(), inspection=found)
