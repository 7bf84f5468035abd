"""The words of a plan."""

from memfit.fitting.plan import Plan

MB = 1_000_000


def test_a_plan_says_what_is_done_what_it_costs_and_what_was_refused():
    plan = Plan(
        256,
        48,
        3_710 * MB,
        4_000 * MB,
        step_s=0.42,
        faster=(24, 1.31),
        whole_bytes=9_800 * MB,
        refused=("lower precision",),
    )

    assert str(plan) == (
        "batches of 256 run in 6 micro-batches of 48, the last of 16\n"
        "measured: peak 3.71 GB of 4.00 GB, 0.42 s per batch\n"
        "micro-batches of 24 were 1.3x faster in trials (see memfit.split)\n"
        "whole batches would need about 9.80 GB\n"
        "not done: lower precision"
    )


def test_a_plan_that_changes_nothing_says_so():
    assert "batches of 32 stay whole" in str(Plan(32, None, 700 * MB, 900 * MB, 0.1))
