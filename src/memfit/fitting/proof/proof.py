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
from itertools import zip_longest
from typing import Any

from memfit.backends import load
from memfit.backends.out_of_memory import is_out_of_memory
from memfit.backends.proof import Predict
from memfit.fitting.proof.counters import Counter, counts_calls
from memfit.fitting.proof.differences import (
    MOST_NOISE,
    TOLERANCE,
    Errors,
    are_zero,
    gradient_errors,
    root_mean_square,
    state_errors,
    tolerance,
    value_errors,
)
from memfit.fitting.proof.explanation import Explanation
from memfit.fitting.proof.loss_gradients import (
    LossErrors,
    measure_added,
    measure_losses,
    measure_predictions,
)
from memfit.fitting.proof.rows import MOST_ROWS, Rows, choose_rows, count_rows
from memfit.fitting.proof.step import Footprint, ProofStep, proving
from memfit.fitting.proof.verdict import Outcome, Verdict
from memfit.keras_private.draws import HeldDraws, held_draws

_FEWEST_ROWS = 2
# Where a draw is a single number, it may be one that hides what it does at other times.
_MORE_TURNS = 8
_CHANGED_BY_CUT = 1e-4


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
    with contextlib.ExitStack() as block:
        for layer in lever.frozen:
            block.callback(setattr, layer, "trainable", layer.trainable)
            layer.trainable = False
        step = block.enter_context(proving(model, rows, is_eager=is_eager))
        held = block.enter_context(held_draws(rows.sizes))
        verdict = _Comparison(step, held, batch, rows, lever).decide(is_eager=is_eager)
    return replace(verdict, num_rows=rows.number, draws_once=held.are_once and lever.cuts)


class _Comparison:
    """Steps on the same rows, compared with each other."""

    def __init__(
        self, step: ProofStep, held: HeldDraws, batch: Any, rows: Rows, lever: Lever
    ) -> None:
        self._step = step
        self._batch = batch
        self._rows = rows
        self._lever = lever
        self._held = held
        self._explain = Explanation(step, rows)

    def decide(self, *, is_eager: bool) -> Verdict:
        """Returns the verdict."""
        whole = self._run_whole(is_eager=is_eager)
        scale = root_mean_square(whole.gradients.read())
        again = self._compare(whole, self._step.run(self._rows, seed=2), scale)
        if again.worst > TOLERANCE:  # other numbers were drawn
            return Verdict(Outcome.UNCLEAR, self._explain.random_draws())
        noise = self._compare(whole, self._step.run(self._rows.reversed(), seed=1), scale)
        if self._lever.cuts:
            refused = self._find_coupling(noise)
            if refused is not None:
                return Verdict(Outcome.DIFFERENT, refused)
        if self._step.weights and are_zero(whole.gradients.read()):
            return Verdict(Outcome.UNCLEAR, self._explain.zero_gradients())
        return self._compare_with_lever(whole, noise, scale)

    def _run_whole(self, *, is_eager: bool) -> Footprint:
        try:
            return self._step.run(self._rows, seed=1)
        except Exception as error:
            if not is_eager or is_out_of_memory(error):
                raise
            raise _EagerError from error

    def _find_coupling(self, noise: Errors) -> str | None:
        """Why samples are coupled, as far as can be told without the lever."""
        if max((*noise.gradients, *noise.states), default=0.0) >= MOST_NOISE:
            return self._explain.order(noise)
        if not self._lever.is_plain:
            return None
        predict = load("proof").make_predict(self._step.model, self._held)
        found = self._measure_losses(predict)
        if max(found.by_output, default=0.0) > TOLERANCE:
            return self._explain.loss(found.by_output)
        added = self._find_added(found, tolerance(max(noise.gradients, default=0.0)))
        if added is not None:
            return self._explain.added_loss(added)
        if self._held.are_single and self._differs_in_other_turns(predict):
            return self._explain.coupling()
        return None

    def _find_added(self, found: LossErrors, most: float) -> float | None:
        """The value of an added loss that differs, or whose gradient does."""
        number = len(found.added)
        self._step.begin(seed=1)
        slopes = measure_added(self._step.model, self._held, self._rows, number) if number else []
        errors = [max(pair) for pair in zip_longest(found.added, slopes, fillvalue=0.0)]
        if max(errors, default=0.0) <= most:
            return None
        return float(found.added_values[errors.index(max(errors))])

    def _measure_losses(self, predict: Predict) -> LossErrors:
        """No errors for a model that needs more of a step around its losses."""
        self._step.begin(seed=1)
        try:
            return measure_losses(self._step.model, self._batch, self._rows, predict)
        except Exception as error:
            if is_out_of_memory(error):
                raise
            return LossErrors((), ())

    def _differs_in_other_turns(self, predict: Predict) -> bool:
        """Whether other random numbers let samples change each other's predictions."""
        for turn in range(1, _MORE_TURNS + 1):
            self._held.turn = turn
            self._step.begin(seed=1)
            if measure_predictions(self._rows, predict) > _CHANGED_BY_CUT:
                return True
        self._held.turn = 0
        return False

    def _compare_with_lever(self, whole: Footprint, noise: Errors, scale: float) -> Verdict:
        beyond = Errors()
        for collects in (False, True) if self._lever.cuts else (False,):
            try:
                with self._lever.install(self._rows.size, collects):
                    left = self._step.run(self._rows, seed=1)
            except Exception as error:
                if is_out_of_memory(error):
                    raise
                return Verdict(Outcome.DIFFERENT, self._explain.error(error))
            counting = self._find_counting(whole, left)
            if counting is not None:
                return Verdict(Outcome.DIFFERENT, self._explain.counting(counting))
            beyond = self._compare(whole, left, scale).beyond(noise)
            if beyond.worst == 0.0:
                return Verdict(Outcome.SAME, collects=collects)
            if any((*beyond.gradients, *beyond.states)):
                break
        return Verdict(Outcome.DIFFERENT, self._explain.difference(beyond))

    def _find_counting(self, whole: Footprint, parts: Footprint) -> Counter | None:
        """A number of the user's that moves with every micro-batch."""
        number = -(-self._rows.number // self._rows.size)
        moves = zip(self._step.counters, whole.counts, parts.counts, strict=True)
        found = (one for one, at_once, cut in moves if counts_calls(at_once, cut, number))
        return next(found, None) if self._lever.cuts else None

    def _compare(self, one: Footprint, other: Footprint, scale: float) -> Errors:
        states = list(one.states.read()), list(other.states.read())
        return Errors(
            gradient_errors(one.gradients.read(), other.gradients.read(), scale),
            state_errors(*states, self._step.state_owners),
            value_errors(one.metrics, other.metrics),
            value_errors(list(one.logs.values()), list(other.logs.values())),
        )
