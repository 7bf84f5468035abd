"""The search for a way to fit, over simulated machines."""

import math
import random
from dataclasses import dataclass, field, replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from memfit.fitting.attempt import Inspection, Levers, Measurement
from memfit.fitting.exploration import Facts
from memfit.fitting.headroom import Headroom
from memfit.fitting.plan import Plan, Refusal
from memfit.fitting.search import search
from memfit.fitting.size_search import even_size

MB = 1_000_000
# Nine trials explore, four verify, one looks and one measures again what held; so it goes for
# plain batches, with as little and with all that can be recomputed, in either precision; where a
# proof refuses micro-batches, also whole. Each may be proved. One more tries a remembered size,
# two a whole batch at once, and one is for the figures of a refusal.
MOST_ATTEMPTS = 4 + 2 * 4 * (1 + 9 + 1 + 4 + 1 + 1)


@dataclass(frozen=True)
class Machine:
    """A process that trains one model: what a step takes, and what of it stays taken.

    Attributes:
        batch_size: Samples in a batch.
        fixed_mb: What a step takes whatever its size.
        sample_mb: What a sample adds.
        bend_mb: What a sample adds for each other sample that runs with it.
        compile_mb: What compiling a step of a new size takes, while no step runs.
        pool_share: How much of the highest peak the process keeps for good.
        noise: How far measurements scatter, as a share.
        ceiling_mb: More than this cannot be allocated.
        saved_share: How much of the samples' memory recomputation saves; `None` if it cannot.
        lowered_share: How much lower precision saves.
        is_counted: Whether what layers keep can be counted.
        is_coupled: Whether micro-batches are another training.
        can_reset: Whether a peak can be measured after a higher one.
        sample_s: How long a sample takes.
    """

    batch_size: int = 256
    fixed_mb: float = 100.0
    sample_mb: float = 1.0
    bend_mb: float = 0.0
    compile_mb: float = 0.0
    pool_share: float = 0.0
    noise: float = 0.0
    ceiling_mb: float = math.inf
    saved_share: float | None = None
    lowered_share: float = 0.0
    is_counted: bool = False
    is_coupled: bool = False
    can_reset: bool = True
    sample_s: float = 0.001
    idle_mb: float = 500.0

    def need_mb(self, levers: Levers, size: int) -> float:
        """What a step takes above what is idle."""
        sample_mb = self.sample_mb + self.bend_mb * size
        if levers.recompute is not None:
            sample_mb *= 1 - (self.saved_share or 0.0)
        if levers.lowers_precision:
            sample_mb *= 1 - self.lowered_share
        step_mb = self.fixed_mb + sample_mb * size
        return max(step_mb, self.compile_mb)

    def peak_bytes(self, levers: Levers, size: int) -> int:
        """The peak of a whole batch in a new process."""
        return math.ceil((self.idle_mb + self.need_mb(levers, size)) * MB)


@dataclass
class Process:
    """A machine at work: remembers what it has taken."""

    machine: Machine
    seed: int = 0
    attempts: list = field(default_factory=list)

    def __post_init__(self):
        self._random = random.Random(self.seed)
        self._kept_mb = self.machine.idle_mb
        self._highest_mb = 0.0

    def measure(self, attempt):
        machine = self.machine
        self.attempts.append(attempt)
        if attempt.levers.recompute is not None and machine.saved_share is None:
            return Measurement(0, 0, inspection=Inspection(is_possible=False))
        if attempt.is_proof:
            return self._prove(attempt)
        if not attempt.num_samples:
            return self._look(attempt)
        need_mb = machine.need_mb(attempt.levers, attempt.size)
        need_mb *= 1 + machine.noise * self._random.uniform(-1, 1)
        peak_mb = max(self._kept_mb, machine.idle_mb + need_mb)
        failed = peak_mb > machine.ceiling_mb
        peak_mb = min(peak_mb, machine.ceiling_mb)
        self._kept_mb = max(
            self._kept_mb, machine.idle_mb + machine.pool_share * (peak_mb - machine.idle_mb)
        )
        self._highest_mb = max(self._highest_mb, peak_mb)
        return Measurement(
            attempt.size,
            math.ceil((peak_mb if machine.can_reset else self._highest_mb) * MB),
            failed,
            num_samples=attempt.num_samples,
            step_s=0.0 if failed else machine.sample_s * attempt.num_samples,
            kept_bytes=math.ceil(self._kept_mb * MB),
        )

    def _prove(self, attempt):
        assert attempt.num_samples >= min(2, self.machine.batch_size)
        is_cut = attempt.levers.micro_batch_size is not None
        if is_cut and self.machine.is_coupled:
            found = Inspection(is_possible=False, why="The loss couples samples.")
        else:
            found = Inspection(changes=("proved",))
        return Measurement(0, math.ceil(self._kept_mb * MB), inspection=found)

    def _look(self, attempt):
        machine, levers = self.machine, attempt.levers
        changes = ("lower precision",) * levers.lowers_precision
        changes += ("recomputed",) * (levers.recompute is not None)
        counted_bytes = machine.sample_mb * MB if machine.is_counted else None
        counted_s = machine.sample_s if machine.is_counted else None
        inspection = Inspection(changes=changes, counted_bytes=counted_bytes, counted_s=counted_s)
        return Measurement(0, math.ceil(self._kept_mb * MB), inspection=inspection)


def facts_of(machine, budget_bytes, **more):
    return Facts(
        batch_size=machine.batch_size,
        headroom=Headroom(budget_bytes, round(machine.idle_mb * MB)),
        can_reset=machine.can_reset,
        **more,
    )


def run(machine, facts, seed=0):
    """Returns how the search ends on a machine, and the process it ran in."""
    process = Process(machine, seed)
    attempts = search(facts)
    try:
        attempt = next(attempts)
        while True:
            assert 0 <= attempt.num_samples <= facts.batch_size
            assert len(process.attempts) < MOST_ATTEMPTS
            attempt = attempts.send(process.measure(attempt))
    except StopIteration as ended:
        return ended.value, process


def enough_for(peak_bytes, machine):
    """The smallest budget that memfit names for this peak."""
    headroom = Headroom(1, round(machine.idle_mb * MB))
    return math.ceil(1.03 * headroom.smallest_budget(peak_bytes))


def count_micro_batches(plan):
    return 1 if plan.size is None else -(-plan.batch_size // plan.size)


def count_levers(plan):
    return (plan.levers.lowers_precision, plan.levers.recompute is not None)


quiet_machines = st.builds(
    Machine,
    batch_size=st.integers(1, 4096),
    fixed_mb=st.floats(0, 500),
    sample_mb=st.floats(0.001, 50),
    bend_mb=st.sampled_from([0.0, 0.0, 0.001, 0.01]),
    compile_mb=st.sampled_from([0.0, 0.0, 50.0, 300.0]),
    saved_share=st.none() | st.floats(0, 0.9),
    lowered_share=st.sampled_from([0.0, 0.5]),
    is_counted=st.booleans(),
    is_coupled=st.just(False),
    sample_s=st.sampled_from([1e-5, 1e-3, 1e-1]),
)
lines = quiet_machines.map(lambda one: replace(one, bend_mb=0.0))
any_machines = st.builds(
    replace,
    quiet_machines,
    pool_share=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    noise=st.sampled_from([0.0, 0.01, 0.1, 0.5, 1.0]),
    ceiling_mb=st.just(math.inf) | st.floats(510, 3000),
    can_reset=st.booleans(),
    is_coupled=st.sampled_from([False, False, True]),
)
more_facts = st.fixed_dictionaries(
    {
        "why_whole": st.sampled_from([None, None, "It cannot be cut."]),
        "has_fixed_batch": st.booleans(),
        "is_exact": st.booleans(),
        "allows_precision": st.booleans(),
        "allows_unverified": st.booleans(),
        "bend": st.sampled_from([1.0, 1.15, 1.4]),
        "remembered_size": st.none() | st.integers(1, 5000),
    }
)


@settings(deadline=None)
@given(any_machines, more_facts, st.integers(501, 6000), st.integers(0, 99))
def test_on_any_machine_the_search_ends_within_its_bound_and_a_plan_was_seen_to_fit(
    machine, more, budget_mb, seed
):
    facts = facts_of(machine, budget_mb * MB, **more)

    result, _ = run(machine, facts, seed)

    assert isinstance(result, Plan | Refusal)
    assert str(result)
    if isinstance(result, Plan):
        assert result.peak_bytes <= facts.headroom.hard_bytes
        is_cut = result.levers.micro_batch_size is not None
        is_unproved = facts.allows_unverified and result.size == 1
        assert not (is_cut and machine.is_coupled) or is_unproved
        if is_cut or result.levers.recompute is not None:
            assert any("proved" in one for one in result.changes)


@settings(deadline=None)
@given(quiet_machines, st.floats(0, 3), st.sampled_from([1.0, 1.15, 1.4]))
def test_a_budget_that_two_samples_at_a_time_keep_is_never_refused(machine, more, bend):
    """Two are needed to prove that cut batches are the same training."""
    needed_bytes = enough_for(machine.peak_bytes(Levers(), min(2, machine.batch_size)), machine)
    facts = facts_of(machine, int(needed_bytes * (1 + more)), bend=bend)

    result, _ = run(machine, facts)

    assert isinstance(result, Plan)
    assert result.changes == (() if result.size is None else ("proved",))


@settings(deadline=None)
@given(quiet_machines, st.floats(0, 3), st.sampled_from([1.0, 1.15, 1.4]), st.booleans())
def test_a_budget_that_a_whole_batch_keeps_is_never_refused_to_a_model_that_cannot_be_cut(
    machine, more, bend, has_fixed_batch
):
    needed_bytes = enough_for(machine.peak_bytes(Levers(), machine.batch_size), machine)
    facts = facts_of(
        machine,
        int(needed_bytes * (1 + more)),
        bend=bend,
        why_whole="It cannot be cut.",
        has_fixed_batch=has_fixed_batch,
    )

    result, _ = run(machine, facts)

    assert isinstance(result, Plan)
    assert result.size is None
    assert result.changes == ()


@settings(deadline=None)
@given(quiet_machines, st.floats(510, 3000))
def test_less_memory_than_the_budget_is_no_reason_to_refuse_what_fits_into_it(machine, ceiling_mb):
    machine = replace(machine, ceiling_mb=ceiling_mb)
    facts = facts_of(machine, 10_000_000 * MB, allows_unverified=True)

    result, _ = run(machine, facts)

    if machine.peak_bytes(Levers(), 1) <= ceiling_mb * MB:
        assert isinstance(result, Plan)


SECOND_SMALLER = Machine(batch_size=2191, fixed_mb=145.0, sample_mb=12.926, compile_mb=300.0)


@settings(deadline=None)
@example(SECOND_SMALLER, 1583.68, 0.0259, False)  # the second size tried is half of the first
@given(
    lines,
    st.floats(510, 4000),
    st.floats(0, 2) | st.floats(0, 0.05),
    st.booleans(),
)
def test_a_larger_budget_never_gives_a_slower_plan(machine, budget_mb, more, allows_precision):
    """No more micro-batches and no other levers, where memory rises in a line.

    It holds for plans that leave the room that is to be left. Where none does, the largest size
    that just fits is taken; with a little more there may be a smaller one that leaves room.
    """
    facts = facts_of(
        machine, int(budget_mb * MB), allows_precision=allows_precision, allows_unverified=True
    )
    small, _ = run(machine, facts)
    headroom = Headroom(int(budget_mb * MB * (1 + more)), facts.headroom.idle_bytes)
    large, _ = run(machine, replace(facts, headroom=headroom))

    if isinstance(small, Plan) and small.peak_bytes <= facts.headroom.safe_bytes:
        assert isinstance(large, Plan)
        assert count_levers(large) <= count_levers(small)
        if count_levers(large) == count_levers(small):
            assert count_micro_batches(large) <= count_micro_batches(small)


@settings(deadline=None)
@given(
    lines,
    st.sampled_from([0.5, 0.9, 1.0]),
    st.floats(0, 3),
    st.sampled_from([1.0, 1.15, 1.4]),
)
def test_a_pool_that_gives_nothing_back_is_no_reason_to_refuse_where_the_first_trial_fits(
    machine, pool_share, more, bend
):
    machine = replace(machine, pool_share=pool_share)
    first = even_size(max(min(2, machine.batch_size), machine.batch_size // 32), machine.batch_size)
    needed_bytes = enough_for(machine.peak_bytes(Levers(), first), machine)

    result, _ = run(machine, facts_of(machine, int(needed_bytes * (1 + more)), bend=bend))

    assert isinstance(result, Plan)
    assert result.changes == (() if result.size is None else ("proved",))


@settings(deadline=None)
@given(quiet_machines, st.integers(501, 6000))
def test_the_budget_that_a_refusal_names_is_enough(machine, budget_mb):
    result, _ = run(machine, facts_of(machine, budget_mb * MB))

    if isinstance(result, Refusal):
        again, _ = run(machine, facts_of(machine, result.least_bytes))
        assert isinstance(again, Plan)


@settings(deadline=None)
@given(lines, st.integers(501, 6000))
def test_the_budget_that_is_named_for_whole_batches_is_enough_where_memory_rises_in_a_line(
    machine, budget_mb
):
    machine, why = replace(machine, compile_mb=0.0), "It cannot be cut."
    result, _ = run(machine, facts_of(machine, budget_mb * MB, why_whole=why))

    if isinstance(result, Refusal):
        again, _ = run(machine, facts_of(machine, result.least_bytes, why_whole=why))
        assert isinstance(again, Plan)


@settings(deadline=None)
@given(quiet_machines, st.floats(0, 3))
def test_a_model_whose_samples_are_coupled_trains_whole_where_that_fits(machine, more):
    machine = replace(machine, is_coupled=True)
    needed_bytes = enough_for(machine.peak_bytes(Levers(), machine.batch_size), machine)

    result, _ = run(machine, facts_of(machine, int(needed_bytes * (1 + more))))

    assert isinstance(result, Plan)
    assert result.size is None


@settings(deadline=None)
@given(lines, st.floats(0.1, 0.9))
def test_whole_batches_that_fit_are_not_proved(machine, more):
    needed_bytes = enough_for(machine.peak_bytes(Levers(), machine.batch_size), machine)

    result, process = run(machine, facts_of(machine, int(needed_bytes * (1 + more))))

    if result.size is None and not result.changes:
        assert not any(one.is_proof for one in process.attempts)


def test_a_refusal_says_which_part_no_smaller_batch_saves():
    machine = Machine(batch_size=256, fixed_mb=600.0, sample_mb=0.1)

    result, _ = run(machine, facts_of(machine, 800 * MB))

    assert "A step takes another 600 MB whatever its samples" in str(result)
    assert "Micro-batches would save next to nothing" in str(result)
    assert isinstance(run(machine, facts_of(machine, result.whole_bytes))[0], Plan)
