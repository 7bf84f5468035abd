"""A walk over all objects disturbs no other thread."""

import gc
import threading
import time

import pytest

from memfit.agent.allocation_trace import AllocationTrace
from memfit.heap.census import count_types, pick_objects, take_census


class Thing:
    pass


def test_objects_are_counted_and_picked_by_type():
    things = [Thing() for _ in range(5)]

    assert count_types()[id(Thing)].number == 5
    assert sorted(map(id, pick_objects([Thing, tuple]))) == sorted(map(id, things))


@pytest.fixture
def few_objects():
    """Walks skip what was there before: the packages of all tests bring millions of objects."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("few_objects")
@pytest.mark.parametrize(
    "walk", [take_census, lambda: AllocationTrace().close()], ids=["census", "trace"]
)
def test_tuples_that_another_thread_is_building_are_left_alone(walk):
    """One `gc.get_objects()` at the wrong moment makes this a `SystemError`."""

    def walk_on():
        for _ in range(4):
            walk()

    def slowly():
        for number in range(4):
            time.sleep(0.001)  # the other thread runs
            yield number

    thread = threading.Thread(target=walk_on)
    thread.start()
    try:
        while thread.is_alive():
            assert tuple(slowly()) == tuple(range(4))
    finally:
        thread.join()
