"""Searches for a way to train within a budget: the fastest ways first, each tried by steps.

The search is a generator that touches nothing. It yields an `Attempt`, is sent its `Measurement`,
and returns a `Plan` or a `Refusal`; `executor.py` does what is asked.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from memfit.fitting.attempt import Attempt, Inspection, Levers, Measurement, Recomputation
from memfit.fitting.exploration import Facts, explore
from memfit.fitting.plan import Plan, Refusal
from memfit.fitting.refusal import FEWEST_PROVED, make_refusal
from memfit.fitting.size_search import (
    best_measurement,
    estimate_peak,
    even_size,
    find_faster,
    fits,
    seems_to_fit,
    settle,
)

# A size that does not hold for the whole batch is followed by what would, and somewhat less.
_SHRINK = 0.97
# Trials of a part of the batch miss some of what malloc wastes over all of it.
_FIRST = 0.95
# An even size below this share of another is a loss, not a precaution.
_FAR = 0.85
_MOST_VERIFIED = 4
# A process that keeps this share of what a trial took has a pool, and will keep it.
_KEEPS = 0.8
# Bytes of activations are counted, not measured; the allocator keeps some of what is saved.
_AMPLE = 2
# A step with room for so much more than its layers are counted to keep needs no careful approach.
_CLEARLY_TIMES, _CLEARLY_FIXED_BYTES = 10, 1_000_000_000
_TOO_FEW = (
    "One sample at a time would fit, but that micro-batches train the same is proved with two "
    'samples at once. Give a larger budget, or allow=("unverified",) to train without the proof.'
)

_Result = TypeVar("_Result")
Search = Generator[Attempt, Measurement, _Result]


def search(facts: Facts) -> Search[Plan | Refusal]:
    """Yields what is to be tried, and returns how to train or why the budget cannot be kept.

    Args:
        facts: What is known of the training.
    """
    return _Search(facts).run()


class _Search:
    """The ways to train, tried one after another."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._batch_size = facts.batch_size
        self._headroom = facts.headroom
        # The first way's, which tell most of a process that has taken nothing yet.
        self._first: tuple[Measurement, ...] = ()
        # Of this way.
        self._explored: tuple[Measurement, ...] = ()
        self._changes: tuple[str, ...] = ()
        # Of all ways.
        self._why_whole = facts.why_whole
        self._proved: dict[Levers, Inspection] = {}
        self._verified: list[Measurement] = []
        self._kept_bytes = 0

    def run(self) -> Search[Plan | Refusal]:
        for way in self._ways():
            plan = yield from way
            if plan is not None:
                plan = yield from self._prove(plan)
            if plan is not None:
                return replace(plan, refused=self._name_refused(plan))
        yield from self._learn_slope()
        facts = replace(self._facts, why_whole=self._why_whole)
        return make_refusal(facts, self._first, self._verified)

    def _ways(self) -> Iterator[Search[Plan | None]]:
        if self._facts.remembered_size is not None:
            yield self._try_remembered(self._facts.remembered_size)
        yield self._try_at_once()
        yield from self._try_levers(Levers())
        if self._facts.allows_precision:
            yield from self._try_levers(Levers(lowers_precision=True))

    def _try_levers(self, levers: Levers) -> Iterator[Search[Plan | None]]:
        for try_way in (self._try_plain, self._try_recomputing):
            if try_way == self._try_recomputing and self._facts.is_exact:
                return  # exact normalisation recomputes everything already
            was_whole = self._is_whole
            yield try_way(levers)
            if self._is_whole and not was_whole:  # a proof has just found out
                yield try_way(levers)

    def _try_remembered(self, size: int) -> Search[Plan | None]:
        """The size that an earlier training of this model found, if it still holds."""
        if size >= self._batch_size:
            return (yield from self._verify(Levers()))
        if self._is_whole:
            return None
        return (yield from self._verify(Levers(micro_batch_size=size)))

    def _try_at_once(self) -> Search[Plan | None]:
        """Whole batches, without growing towards them, if there is clearly room for more."""
        idle = yield from self._look(Levers())
        counted_bytes = idle.inspection.counted_bytes if idle and idle.inspection else None
        if idle is None or counted_bytes is None:
            return None
        needed_bytes = _CLEARLY_FIXED_BYTES + _CLEARLY_TIMES * counted_bytes * self._batch_size
        if idle.peak_bytes + needed_bytes > self._limit_bytes:
            return None
        return (yield from self._verify(Levers()))

    def _try_recomputing(self, levers: Levers) -> Search[Plan | None]:
        """Recomputes as little as may make it fit, then as much as there is."""
        if not self._is_whole:
            return (yield from self._try_plain(replace(levers, recompute=Recomputation(None, 1))))
        whole_bytes = estimate_peak(self._first, self._batch_size)
        plan = None
        if whole_bytes is not None:
            needed_bytes = max(whole_bytes - self._limit_bytes, 1)
            some = Recomputation(_AMPLE * needed_bytes, self._batch_size)
            plan = yield from self._try_plain(replace(levers, recompute=some))
        if plan is None:
            everything = Recomputation(None, self._batch_size)
            plan = yield from self._try_plain(replace(levers, recompute=everything))
        return plan

    def _try_plain(self, levers: Levers) -> Search[Plan | None]:
        """Whole batches, or micro-batches of the largest size that fits."""
        if self._is_whole:
            return (yield from self._try_whole(levers))
        limit_bytes = self._limit_bytes
        cut = replace(levers, micro_batch_size=self._batch_size)
        explored = yield from self._explore(cut, limit_bytes)
        if explored is None:
            return None
        self._explored = explored
        size = settle(explored, self._batch_size, limit_bytes)
        plan = None
        if size == self._batch_size:
            plan = yield from self._verify(levers)
        if plan is None and size is not None:
            plan = yield from self._find_largest(cut, size)
        return plan

    def _try_whole(self, levers: Levers) -> Search[Plan | None]:
        """Whole batches: tried with growing ones, as the last step is the largest."""
        if self._facts.has_fixed_batch:
            return (yield from self._try_fixed(levers))
        limit_bytes = self._limit_bytes
        explored = yield from self._explore(levers, limit_bytes)
        if explored is None:
            return None
        best = best_measurement(explored[1:], limit_bytes)
        if best is not None and best.size == self._batch_size:
            return self._plan(levers, best, _seconds(explored, self._batch_size)[best.size])
        # Growing sizes end where little is to be gained, or where memory may rise more steeply
        # than before. Smaller batches are no way to train here: what seems to fit is tried.
        if seems_to_fit(explored, self._batch_size, limit_bytes):
            return (yield from self._verify(levers))
        return None

    def _try_fixed(self, levers: Levers) -> Search[Plan | None]:
        """A whole batch, as the model takes no other."""
        idle = yield from self._look(levers)
        if idle is None:
            return None
        measured = yield from self._measure(levers)
        self._first = self._first or (measured,)
        is_enough = fits(measured, self._headroom.hard_bytes)
        return self._plan(levers, measured, measured.step_s) if is_enough else None

    def _prove(self, plan: Plan) -> Search[Plan | None]:
        """The plan if its levers are proved to leave the training the same."""
        levers = _without_size(plan.levers)
        if levers == Levers():
            return plan
        if levers not in self._proved:
            self._proved[levers] = yield from self._ask_proof(plan)
        found = self._proved[levers]
        if found.is_possible:
            return replace(plan, changes=(*plan.changes, *found.changes))
        if plan.size is not None:
            self._why_whole = found.why
        return None

    def _ask_proof(self, plan: Plan) -> Search[Inspection]:
        num_rows = plan.size or plan.batch_size
        if num_rows == 1 and plan.batch_size > 1:
            if not (yield from self._fits_proof(plan)):
                if not self._facts.allows_unverified:
                    return Inspection(is_possible=False, why=_TOO_FEW)
                return Inspection(changes=("not proved: one sample at a time is too few",))
            num_rows = FEWEST_PROVED
        proved = yield Attempt(plan.levers, num_rows, is_proof=True)
        return proved.inspection or Inspection()

    def _fits_proof(self, plan: Plan) -> Search[bool]:
        """Whether as many samples fit at once as a proof needs."""
        needed_bytes = estimate_peak(self._explored, FEWEST_PROVED)
        if needed_bytes is not None and needed_bytes > self._headroom.hard_bytes:
            return False
        measured = yield Attempt(replace(plan.levers, micro_batch_size=None), FEWEST_PROVED)
        return fits(measured, self._headroom.hard_bytes)

    @property
    def _is_whole(self) -> bool:
        """Whether batches have to stay whole."""
        return self._why_whole is not None

    @property
    def _limit_bytes(self) -> int:
        """What a trial may need. What the first round took is kept by the process, and counts."""
        return self._headroom.hard_bytes if self._first else self._headroom.step_bytes

    def _look(self, levers: Levers) -> Search[Measurement | None]:
        """What is taken before any step; `None` if the levers cannot be installed."""
        idle = yield Attempt(levers, 0)
        inspection = idle.inspection or Inspection()
        self._changes = inspection.changes
        return idle if inspection.is_possible else None

    def _explore(self, levers: Levers, limit_bytes: int) -> Search[tuple[Measurement, ...] | None]:
        """What growing sizes need; `None` if the levers cannot be installed."""
        idle = yield from self._look(levers)
        if idle is None:
            return None
        explored = yield from explore(self._facts, levers, idle, limit_bytes)
        self._first = self._first or explored
        self._kept_bytes = explored[-1].kept_bytes
        return explored

    def _find_largest(self, cut: Levers, size: int) -> Search[Plan | None]:
        """The largest size that a whole batch is seen to run in, `size` or somewhat smaller."""
        plan = self._find_explored(cut)
        if plan is None and not self._is_hidden():
            plan = yield from self._verify_smaller(cut, self._shrink(size))
        if plan is None:
            plan = yield from self._find_held(cut)
        return plan

    def _shrink(self, size: int) -> int:
        """Somewhat less than `size`; `size` itself where even sizes lie far from each other."""
        smaller = even_size(max(1, int(size * _FIRST)), self._batch_size)
        return smaller if smaller > _FAR * size else size

    def _find_explored(self, cut: Levers) -> Plan | None:
        """The plan if the last trial was a whole batch, and as large as there is room for.

        Where the last one was to tell what a sample needs, a larger one before it counts.
        """
        last = self._explored[-1]
        best = best_measurement(self._explored[:0:-1], self._headroom.safe_bytes)
        found = best if best is not None and best.size > last.size else last
        step_s = _seconds(self._explored, self._batch_size).get(found.size)
        if step_s is None or not self._holds(found):
            return None
        return self._plan(_resize(cut, found.size), found, step_s)

    def _verify_smaller(self, cut: Levers, size: int) -> Search[Plan | None]:
        """The whole batch in micro-batches of this size, or somewhat smaller ones."""
        headroom = self._headroom
        for _ in range(_MOST_VERIFIED):
            levers = _resize(cut, size)
            measured = yield from self._measure(levers)
            self._verified.append(measured)
            if self._holds(measured):
                return self._plan(levers, measured, measured.step_s)
            if size == 1 or self._is_hidden():
                return None
            taken_bytes = measured.peak_bytes - headroom.idle_bytes
            share = (headroom.safe_bytes - headroom.idle_bytes) / (taken_bytes or 1)
            share = share if 0 < share < 1 else 0.5
            size = even_size(max(1, int(size * share * _SHRINK)), self._batch_size)
        return None

    def _find_held(self, cut: Levers) -> Search[Plan | None]:
        """The largest size that held, where none is seen to leave some room as well."""
        seconds = _seconds(self._explored, self._batch_size)
        explored = self._explored[1:]
        if not self._is_hidden():  # some micro-batches do not tell what the whole batch needs
            explored = tuple(one for one in explored if one.size in seconds)
        best = best_measurement([*explored, *self._verified], self._headroom.hard_bytes)
        if best is None:
            return None
        levers = _resize(cut, best.size)
        step_s = {**seconds, **_seconds(self._verified, self._batch_size)}.get(best.size)
        if step_s is None:
            again = yield from self._measure(levers)
            if again.failed:
                return None
            step_s = again.step_s
        is_passed = self._facts.can_reset and self._kept_bytes > self._headroom.budget_bytes
        plan = self._plan(levers, best, step_s)
        return replace(plan, kept_bytes=self._kept_bytes if is_passed else None)

    def _holds(self, measured: Measurement) -> bool:
        """Whether a whole batch fits with some room left, or smaller sizes would leave no more."""
        headroom = self._headroom
        if fits(measured, headroom.safe_bytes):
            return True
        taken_bytes = measured.peak_bytes - headroom.idle_bytes
        return (
            fits(measured, headroom.hard_bytes)
            and self._kept_bytes - headroom.idle_bytes > _KEEPS * taken_bytes
        )

    def _is_hidden(self) -> bool:
        """Whether the process keeps so much that what is tried now cannot show that it fits."""
        return not self._facts.can_reset or self._kept_bytes > self._headroom.safe_bytes

    def _measure(self, levers: Levers) -> Search[Measurement]:
        """The whole batch."""
        measured = yield Attempt(levers, self._batch_size)
        self._kept_bytes = measured.kept_bytes
        return measured

    def _verify(self, levers: Levers) -> Search[Plan | None]:
        """The plan if the whole batch fits."""
        measured = yield from self._measure(levers)
        self._verified.append(measured)
        is_enough = fits(measured, self._headroom.hard_bytes)
        return self._plan(levers, measured, measured.step_s) if is_enough else None

    def _plan(self, levers: Levers, measured: Measurement, step_s: float) -> Plan:
        size = levers.micro_batch_size
        sample_s = step_s / self._batch_size
        return Plan(
            batch_size=self._batch_size,
            size=size,
            peak_bytes=measured.peak_bytes,
            budget_bytes=self._headroom.budget_bytes,
            place=self._facts.place,
            faster=None if size is None else find_faster(self._explored, size, sample_s),
            step_s=step_s,
            whole_bytes=None if size is None else estimate_peak(self._first, self._batch_size),
            levers=levers,
            changes=self._changes,
        )

    def _name_refused(self, plan: Plan) -> tuple[str, ...]:
        refused = []
        if self._is_whole and plan.changes:
            refused.append("micro-batches (the model cannot be split)")
        if (plan.size or plan.changes) and not self._facts.allows_precision:
            refused.append('lower precision (needs allow=("precision",))')
        return tuple(refused)

    def _learn_slope(self) -> Search[None]:
        """Tries a smaller size where those that were tried do not tell what a sample needs."""
        sizes = {one.size for one in self._first if one.size and not one.failed}
        half = min(sizes, default=0) // 2
        if not half or self._facts.has_fixed_batch or estimate_peak(self._first, 0) is not None:
            return
        levers = Levers() if self._is_whole else Levers(micro_batch_size=half)
        measured = yield Attempt(levers, half if self._is_whole else self._batch_size)
        self._first = (*self._first, measured)


def _resize(levers: Levers, size: int) -> Levers:
    return replace(levers, micro_batch_size=size)


def _without_size(levers: Levers) -> Levers:
    """What is proved: for micro-batches of any size, in full precision."""
    size = None if levers.micro_batch_size is None else 1
    return replace(levers, micro_batch_size=size, lowers_precision=False)


def _seconds(measured: Sequence[Measurement], batch_size: int) -> dict[int, float]:
    """How long a whole batch took, by size, where one was tried."""
    return {one.size: one.step_s for one in measured if one.num_samples == batch_size}
