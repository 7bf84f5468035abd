"""A short trace of allocations, and trials of what could give memory back."""

import gc
import tracemalloc

import pytest

from memfit.agent.allocation_trace import AllocationTrace
from memfit.agent.remedy_trials import try_collect, try_trim
from memfit.heap.census import take_census

MB = 1_000_000


@pytest.fixture
def few_objects():
    """Walks skip what was there before: the packages of all tests bring millions of objects."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("few_objects")
def test_a_trace_names_the_line_that_leaves_something_behind():
    kept = []
    trace = AllocationTrace()
    trace.take_first_snapshot()
    for _ in range(5):
        kept.append(bytearray(MB))
        bytearray(MB)  # passes

    found = trace.close()

    assert found[0].thing == "python"
    assert found[0].statement == "kept.append(bytearray(MB))"
    assert found[0].growth_bytes == pytest.approx(5 * MB, rel=0.01)
    assert not tracemalloc.is_tracing()


@pytest.mark.usefixtures("few_objects")
def test_what_was_there_before_the_first_snapshot_is_not_counted():
    trace = AllocationTrace()
    kept = [bytearray(MB) for _ in range(5)]
    trace.take_first_snapshot()

    found = trace.close()

    assert kept
    assert [one for one in found if one.growth_bytes > MB] == []


def test_a_script_that_traces_itself_is_left_alone():
    assert AllocationTrace.is_possible()
    tracemalloc.start()
    try:
        assert not AllocationTrace.is_possible()
    finally:
        tracemalloc.stop()


class Node:
    """A part of a cycle."""

    def __init__(self):
        self.me = self
        self.block = bytearray(MB)


def test_a_collection_reports_what_it_freed():
    gc.disable()
    try:
        for _ in range(30):
            Node()

        trial = try_collect()
    finally:
        gc.enable()

    assert trial.remedy == "collect"
    assert trial.examples["Node"] >= 30
    assert trial.objects >= 30
    assert trial.before_bytes - trial.after_bytes > 15 * MB


def test_trimming_changes_nothing_that_is_in_use():
    kept = [bytes([number % 256]) * 1000 for number in range(1000)]

    trial = try_trim()

    assert trial is None or trial.after_bytes <= trial.before_bytes + MB
    assert kept[7] == bytes([7]) * 1000


def test_a_census_counts_objects_and_finds_the_users_own():
    node = Node()

    def make():
        held = [node]
        return lambda: held

    closure = make()

    census = take_census()

    assert census.numbers["objects"] > 1000
    assert any(one is node for one in census.roots)
    assert any(one is closure for one in census.roots)
