"""The proof: a step without and a step with a lever leave the same behind, or the lever is refused.

Both run on rows of the user's own batch, from one state, with the same random draws. Everything
that they leave is compared: gradients, other variables, metrics, logs. How far rounding may take
them is read off the model itself, by a step on the same rows in reverse.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from memfit.backends import load
from memfit.backends.out_of_memory import is_out_of_memory
from memfit.fitting.proof.differences import (
    MOST_NOISE,
    TOLERANCE,
    Errors,
    gradient_errors,
    root_mean_square,
    value_errors,
)
from memfit.fitting.proof.explanation import Explanation
from memfit.fitting.proof.loss_gradients import measure_losses
from memfit.fitting.proof.rows import MOST_ROWS, Rows, choose_rows, count_rows
from memfit.fitting.proof.step import Footprint, ProofStep, proving
from memfit.fitting.proof.verdict import Outcome, Verdict
from memfit.keras_private.draws import held_draws

# Two steps on the same rows that differ by more have drawn different numbers.
_SAME_STEP = 1e-6
_FEWEST_ROWS = 2


@dataclass(frozen=True, slots=True)
class Lever:
    """A lever as a proof sees it.

    Attributes:
        install: Takes the size of a micro-batch and whether predictions are gathered; returns a
            block at whose end the lever is undone.
        cuts: Whether it cuts batches.
        is_plain: Whether a micro-batch runs through the model as a batch of its own.
        frozen: Layers that may train otherwise, as the user has allowed: they are held still.
        name: What it is told apart by from other levers; a verdict on one without is not kept.
    """

    install: Callable[[int, bool], AbstractContextManager[Any]]
    cuts: bool = True
    is_plain: bool = True
    frozen: Sequence[Any] = ()
    name: str = ""


class _EagerError(Exception):
    """The model cannot run eagerly."""


def prove(model: Any, batch: Any, lever: Lever, most_rows: int = MOST_ROWS) -> Verdict:
    """Returns whether the training with a lever is the training without; the model is as before.

    Args:
        model: A built and compiled model.
        batch: Inputs, targets and weights of a batch of its data.
        lever: What is to be proved.
        most_rows: How many rows fit into a whole step.
    """
    if lever.cuts and count_rows(batch) < 2:
        return Verdict(Outcome.SAME, num_rows=count_rows(batch))
    begun_s = time.perf_counter()
    while True:
        rows = choose_rows(model, batch, most_rows)
        try:
            verdict = _prove_somehow(model, batch, rows, lever)
        except Exception as error:
            if not is_out_of_memory(error) or rows.number <= _FEWEST_ROWS:
                raise
        else:
            return replace(verdict, taken_s=time.perf_counter() - begun_s)
        most_rows = rows.number // 2


def _prove_somehow(model: Any, batch: Any, rows: Rows, lever: Lever) -> Verdict:
    """Proves it eagerly where that is quick; compiled if the model cannot run eagerly."""
    if load("proof").IS_EAGER and not model.run_eagerly:
        with contextlib.suppress(_EagerError):
            return _prove(model, batch, rows, lever, is_eager=True)
    return _prove(model, batch, rows, lever, is_eager=False)


def _prove(model: Any, batch: Any, rows: Rows, lever: Lever, *, is_eager: bool) -> Verdict:
    once: list[tuple[int, ...]] = []
    with contextlib.ExitStack() as block:
        for layer in lever.frozen:
            block.callback(setattr, layer, "trainable", layer.trainable)
            layer.trainable = False
        step = block.enter_context(proving(model, is_eager=is_eager))
        block.enter_context(held_draws(rows.sizes, once.append))
        verdict = _Comparison(step, batch, rows, lever, is_eager=is_eager).decide()
    return replace(verdict, num_rows=rows.number, draws_once=bool(once) and lever.cuts)


class _Comparison:
    """Steps on the same rows, compared with each other."""

    def __init__(
        self, step: ProofStep, batch: Any, rows: Rows, lever: Lever, *, is_eager: bool
    ) -> None:
        self._step = step
        self._batch = batch
        self._rows = rows
        self._lever = lever
        self._is_eager = is_eager
        self._explain = Explanation(step, rows)

    def decide(self) -> Verdict:
        """Returns the verdict."""
        whole = self._run_whole()
        scale = root_mean_square(whole.gradients.read())
        again = _compare(whole, self._step.run(self._rows, seed=2), scale)
        if again.worst > _SAME_STEP:
            return Verdict(Outcome.UNCLEAR, self._explain.random_draws())
        noise = _compare(whole, self._step.run(self._rows.reversed(), seed=1), scale)
        if self._lever.cuts:
            refused = self._find_coupling(noise)
            if refused is not None:
                return Verdict(Outcome.DIFFERENT, refused)
        if scale == 0.0 and self._step.weights:
            return Verdict(Outcome.UNCLEAR, self._explain.zero_gradients())
        return self._compare_with_lever(whole, noise, scale)

    def _run_whole(self) -> Footprint:
        try:
            return self._step.run(self._rows, seed=1)
        except Exception as error:
            if not self._is_eager or is_out_of_memory(error):
                raise
            raise _EagerError from error

    def _find_coupling(self, noise: Errors) -> str | None:
        """Why samples are coupled, as far as can be told without the lever."""
        if noise.worst >= MOST_NOISE:
            return self._explain.order(noise)
        if not self._lever.is_plain:
            return None
        self._step.begin(seed=1)
        found = measure_losses(self._step.model, self._batch, self._rows)
        if max(found.by_output, default=0.0) > TOLERANCE:
            return self._explain.loss(found.by_output)
        if max(found.added, default=0.0) > TOLERANCE:
            return self._explain.added_loss()
        return None

    def _compare_with_lever(self, whole: Footprint, noise: Errors, scale: float) -> Verdict:
        beyond = Errors()
        for collects in (False, True) if self._lever.cuts else (False,):
            try:
                with self._lever.install(self._rows.size, collects):
                    found = _compare(whole, self._step.run(self._rows, seed=1), scale)
            except Exception as error:
                if is_out_of_memory(error):
                    raise
                return Verdict(Outcome.DIFFERENT, self._explain.error(error))
            beyond = found.beyond(noise)
            if beyond.worst == 0.0:
                return Verdict(Outcome.SAME, collects=collects)
            if any((*beyond.gradients, *beyond.states)):
                break
        return Verdict(Outcome.DIFFERENT, self._explain.difference(beyond))


def _compare(one: Footprint, other: Footprint, scale: float) -> Errors:
    return Errors(
        gradient_errors(one.gradients.read(), other.gradients.read(), scale),
        value_errors(one.states, other.states),
        value_errors(one.metrics, other.metrics),
        value_errors(list(one.logs.values()), list(other.logs.values())),
    )
