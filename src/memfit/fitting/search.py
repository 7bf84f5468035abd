"""Chooses how to train within a budget: tries ways, the fastest first, and leaves one on."""

import contextlib
from collections.abc import Callable
from dataclasses import replace

from memfit.backends.micro_batches import Pieces
from memfit.errors import BudgetError, UsageError
from memfit.fitting.budget import Plan, Room
from memfit.fitting.graph.batchnorm import explain_batchnorm, find_batchnorm
from memfit.fitting.known_sizes import Memory
from memfit.fitting.levers.change import Change
from memfit.fitting.levers.micro_batches import check_model, has_fixed_batch, install, make_pieces
from memfit.fitting.levers.precision import reduce_precision
from memfit.fitting.levers.recompute import recompute
from memfit.fitting.loss_check import explain_coupling
from memfit.fitting.request import Request
from memfit.fitting.size_search import (
    Trial,
    best_trial,
    estimate_peak,
    even_size,
    find_faster,
    fits,
    settle,
)
from memfit.fitting.trial_steps import Measured, Prober, release
from memfit.units import format_size

# A size that does not hold for the whole batch is followed by what would, and somewhat less.
_SHRINK = 0.97
# Trials of a part of the batch miss some of what malloc wastes over all of it.
_FIRST = 0.95
# An even size below this share of another is a loss, not a precaution.
_FAR = 0.85
_MOST_VERIFIED = 4
# A process that keeps this share of what a trial took has a pool, and will keep it.
_KEEPS = 0.8
# What was measured now may be more the next time.
_ONCE_MORE = 1.03
# Bytes of activations are counted, not measured; the allocator keeps some of what is saved.
_AMPLE = 2


def choose(prober: Prober, room: Room, request: Request, changes: contextlib.ExitStack) -> Plan:
    """Returns the plan, with the model made ready to train by it.

    Args:
        prober: Runs steps of a built and compiled model.
        room: What may be used.
        request: What the user asks for.
        changes: Gets what undoes the changes.

    Raises:
        BudgetError: Nothing fits; says the smallest budget that would do.
    """
    memory = Memory.of(prober.model, prober.batch, room.budget_bytes, request)
    plan = _Chooser(prober, room, request, changes).choose(memory.size)
    memory.keep(plan.size or plan.batch_size)
    return plan


class _Chooser:
    """The ways to train, tried one after another."""

    def __init__(
        self, prober: Prober, room: Room, request: Request, changes: contextlib.ExitStack
    ) -> None:
        self._prober = prober
        self._model = prober.model
        self._batch_size = prober.batch_size
        self._room = room
        self._request = request
        self._changes = changes
        self._levers: list[str] = []
        self._trials: tuple[Trial, ...] = ()
        self._last_trials: tuple[Trial, ...] = ()
        self._tried_whole: list[Trial] = []
        self._whole_s: dict[int, float] = {}
        self._why_whole = _find_why_whole(prober, request)
        self._is_exact = request.batchnorm == "exact" and bool(find_batchnorm(prober.model))

    def choose(self, remembered_size: int | None) -> Plan:
        # Exact normalisation recomputes everything already.
        recomputing = [] if self._is_exact else [self._try_recomputing]
        ways: list[Callable[[], Plan | None]] = [self._try_plain, *recomputing]
        if "precision" in self._request.allow:
            ways += [self._try_precision, *recomputing]
        if remembered_size is not None:
            ways.insert(0, lambda: self._try_remembered(remembered_size))
        for way in ways:
            plan = way()
            if plan is not None:
                return replace(plan, refused=self._refused(plan))
        raise self._explain()

    def _try_plain(self) -> Plan | None:
        """Whole batches, or pieces of the largest size that fits."""
        if self._why_whole is not None:
            return self._try_whole()
        pieces, change = self._install()
        limit_bytes = self._limit_bytes
        # What exact normalisation keeps is that of a whole batch.
        measured = self._prober.try_sizes(limit_bytes, pieces.resize, tries_whole=self._is_exact)
        self._trials = self._trials or measured.trials
        self._last_trials = measured.trials
        size = settle(measured.trials, self._batch_size, limit_bytes)
        if size == self._batch_size:
            change.undo()
            plan = self._verify(None)
            if plan is not None:
                return plan
            pieces, change = self._install()
        if size is not None:
            plan = self._find_largest(measured, pieces, size)
            if plan is not None:
                self._changes.callback(change.undo)
                return plan
        change.undo()
        return None

    def _find_largest(self, measured: Measured, pieces: Pieces, size: int) -> Plan | None:
        """The largest pieces that a whole batch is seen to run in, `size` or somewhat smaller."""
        plan = self._find_verified(measured, pieces)
        if plan is None and not self._is_hidden():
            plan = self._verify_pieces(pieces, self._shrink(size))
        return plan or self._find_held(measured, pieces)

    def _shrink(self, size: int) -> int:
        """Somewhat less than `size`; `size` itself where even sizes lie far from each other."""
        smaller = even_size(max(1, int(size * _FIRST)), self._batch_size)
        return smaller if smaller > _FAR * size else size

    def _try_whole(self) -> Plan | None:
        """Whole batches: tried with growing ones, as the last step is the largest."""
        if has_fixed_batch(self._model):
            trial, step_s = self._prober.try_step(self._batch_size)
            self._trials = self._trials or (trial,)
            return self._plan(None, trial, step_s) if fits(trial, self._room.hard_bytes) else None
        limit_bytes = self._limit_bytes
        measured = self._prober.try_sizes(limit_bytes, None)
        self._trials = self._trials or measured.trials
        best = best_trial(measured.trials[1:], limit_bytes)
        if best is None or best.size < self._batch_size:
            return None
        return self._plan(None, best, measured.seconds[best.size])

    @property
    def _limit_bytes(self) -> int:
        """What a trial may need. What the first round took is kept by the process, and counts."""
        return self._room.hard_bytes if self._trials else self._room.step_bytes

    def _try_remembered(self, size: int) -> Plan | None:
        """The size that an earlier training of this model found, if it still holds."""
        if size >= self._batch_size:
            return self._verify(None)
        if self._why_whole is not None:
            return None
        _, change = self._install(size)
        plan = self._verify(size)
        if plan is None:
            change.undo()
        else:
            self._changes.callback(change.undo)
        return plan

    def _try_recomputing(self) -> Plan | None:
        """Recomputes as little as may make it fit, then as much as there is."""
        if self._why_whole is None:
            return self._try_with(None, batch_size=1)
        whole_bytes = estimate_peak(self._trials, self._batch_size)
        plan = None
        if whole_bytes is not None:
            needed_bytes = max(whole_bytes - self._limit_bytes, 1)
            plan = self._try_with(_AMPLE * needed_bytes, self._batch_size)
        return plan or self._try_with(None, self._batch_size)

    def _try_with(self, bytes_to_save: int | None, batch_size: int) -> Plan | None:
        """The same with some blocks recomputed."""
        try:
            change = recompute(self._model, bytes_to_save, batch_size=batch_size)
        except UsageError:
            return None
        plan = self._try_plain()
        if plan is None:
            change.undo()
            return None
        self._changes.callback(change.undo)
        return replace(plan, levers=(*self._levers, str(change)))

    def _try_precision(self) -> Plan | None:
        change = reduce_precision(self._model)
        self._changes.callback(change.undo)
        self._levers.append(str(change))
        return self._try_plain()

    def _install(self, size: int | None = None) -> tuple[Pieces, Change]:
        """Cuts batches. Once much is taken, malloc gives back what lies free between pieces.

        A heap in which freed and living tensors lie mixed may grow by a tenth.
        """
        pieces = make_pieces(self._model, size or self._batch_size, self._request.batchnorm)
        trim_above, most_bytes = self._prober.gauge.trim_above, self._room.step_bytes
        pieces.after_each = lambda: trim_above(most_bytes)
        return pieces, install(self._model, pieces, self._request.batchnorm)

    def _find_verified(self, measured: Measured, pieces: Pieces) -> Plan | None:
        """The plan if the last trial was a whole batch, and as large as there is room for."""
        last = measured.trials[-1]
        if last.size not in measured.seconds or not self._holds(last):
            return None
        pieces.resize(last.size)
        return self._plan(last.size, last, measured.seconds[last.size])

    def _verify_pieces(self, pieces: Pieces, size: int) -> Plan | None:
        """The whole batch in pieces of this size, or somewhat smaller ones."""
        room = self._room
        for _ in range(_MOST_VERIFIED):
            pieces.resize(size)
            trial, step_s = self._try_batch(size)
            if self._holds(trial):
                return self._plan(size, trial, step_s)
            if size == 1 or self._is_hidden():
                return None
            share = (room.safe_bytes - room.idle_bytes) / (trial.peak_bytes - room.idle_bytes)
            share = share if 0 < share < 1 else 0.5
            size = even_size(max(1, int(size * share * _SHRINK)), self._batch_size)
        return None

    def _find_held(self, measured: Measured, pieces: Pieces) -> Plan | None:
        """The largest size that held, where none is seen to leave some room as well."""
        trials = measured.trials[1:]
        if not self._is_hidden():  # some pieces do not tell what the whole batch needs
            trials = tuple(one for one in trials if one.size in measured.seconds)
        best = best_trial([*trials, *self._tried_whole], self._room.hard_bytes)
        if best is None:
            return None
        pieces.resize(best.size)
        step_s = {**measured.seconds, **self._whole_s}.get(best.size)
        if step_s is None:
            trial, step_s = self._prober.try_step(best.size)
            if trial.failed:
                return None
        kept_bytes = self._read_kept()
        is_passed = self._prober.gauge.can_reset and kept_bytes > self._room.budget_bytes
        return replace(
            self._plan(best.size, best, step_s), kept_bytes=kept_bytes if is_passed else None
        )

    def _holds(self, trial: Trial) -> bool:
        """Whether a whole batch fits with some room left, or smaller pieces would leave no more."""
        room = self._room
        if fits(trial, room.safe_bytes):
            return True
        taken_bytes = trial.peak_bytes - room.idle_bytes
        return (
            fits(trial, room.hard_bytes)
            and self._read_kept() - room.idle_bytes > _KEEPS * taken_bytes
        )

    def _is_hidden(self) -> bool:
        """Whether the process keeps so much that what is tried now cannot show that it fits."""
        return not self._prober.gauge.can_reset or self._read_kept() > self._room.safe_bytes

    def _read_kept(self) -> int:
        """What the process takes between trials."""
        release()
        return self._prober.gauge.read()

    def _try_batch(self, size: int) -> tuple[Trial, float]:
        """The whole batch in pieces of this size."""
        trial, step_s = self._prober.try_step(size)
        self._tried_whole.append(trial)
        self._whole_s[size] = step_s
        return trial, step_s

    def _verify(self, size: int | None) -> Plan | None:
        trial, step_s = self._try_batch(size or self._batch_size)
        return self._plan(size, trial, step_s) if fits(trial, self._room.hard_bytes) else None

    def _plan(self, size: int | None, trial: Trial, step_s: float) -> Plan:
        whole = estimate_peak(self._trials, self._batch_size) if size is not None else None
        return Plan(
            batch_size=self._batch_size,
            size=size,
            peak_bytes=trial.peak_bytes,
            budget_bytes=self._room.budget_bytes,
            place=self._prober.gauge.place,
            faster=find_faster(self._last_trials, size, step_s / self._batch_size)
            if size
            else None,
            step_s=step_s,
            whole_bytes=whole,
            levers=tuple(self._levers),
        )

    def _least_peak(self) -> int | None:
        tried = self._tried_whole or self._trials
        peaks = [one.peak_bytes for one in tried if one.size]
        return min(peaks, default=None)

    def _refused(self, plan: Plan) -> tuple[str, ...]:
        refused = []
        if self._why_whole is not None and plan.levers:
            refused.append("pieces (the model cannot be cut)")
        if (plan.size or plan.levers) and "precision" not in self._request.allow:
            refused.append('lower precision (needs allow=("precision",))')
        return tuple(refused)

    def _explain(self) -> BudgetError:
        """Says what would do."""
        taken = (
            f"The budget of {format_size(self._room.budget_bytes)} cannot be kept: "
            f"{format_size(self._room.idle_bytes)} are taken before training, and"
        )
        counted = next((one for one in self._trials if one.is_counted), None)
        if counted is not None:
            return BudgetError(
                f"{taken} {format_size(counted.peak_bytes)} with one batch of {self._batch_size} "
                "and its copies, to which the step comes. Give clearly more than that, or make "
                "batch_size smaller."
            )
        peak_bytes = (
            self._least_peak()
            if self._why_whole is None
            else estimate_peak(self._trials, self._batch_size) or self._least_peak()
        )
        least = _ONCE_MORE * self._room.smallest_budget(peak_bytes or self._room.idle_bytes)
        what = "one sample at a time" if self._why_whole is None else "a whole batch"
        why = f" {self._why_whole}" if self._why_whole is not None else ""
        return BudgetError(
            f"{taken} {what} needs about {format_size(least)} in all. Give at least that, or a "
            f"smaller model.{why}"
        )


def _find_why_whole(prober: Prober, request: Request) -> str | None:
    """Why batches cannot be cut; `None` if they can."""
    try:
        check_model(prober.model)
    except UsageError as error:
        return str(error)
    layers = find_batchnorm(prober.model)
    if layers and request.batchnorm is None:
        return explain_batchnorm(layers)
    return explain_coupling(prober.model, prober.batch)
