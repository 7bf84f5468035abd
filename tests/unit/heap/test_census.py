"""A look at all objects is in nobody's way."""

import threading
import time

import pytest

from memfit.agent.allocation_window import Window
from memfit.heap.census import count_types, pick_objects, take_census


class Thing:
    pass


def test_objects_are_counted_and_picked_by_type():
    things = [Thing() for _ in range(5)]

    assert count_types()[Thing] == 5
    assert sorted(map(id, pick_objects({Thing, tuple}))) == sorted(map(id, things))


@pytest.mark.parametrize("look", [take_census, lambda: Window().close()], ids=["census", "window"])
def test_tuples_that_are_being_built_in_another_thread_become_whole(look):
    """One `gc.get_objects()` at the wrong moment makes this a `SystemError`."""

    def look_on():
        for _ in range(4):
            look()

    def slowly():
        for number in range(4):
            time.sleep(0.001)  # the other thread runs
            yield number

    thread = threading.Thread(target=look_on)
    thread.start()
    try:
        while thread.is_alive():
            assert tuple(slowly()) == tuple(range(4))
    finally:
        thread.join()
