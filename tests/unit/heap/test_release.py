"""Garbage is collected, and objects from before are not looked through each time."""

import gc
import weakref

from memfit.heap.release import release, releasing_often


class Node:
    """A part of a cycle."""

    def __init__(self):
        self.me = self


def test_garbage_that_is_made_inside_the_block_is_collected_there():
    with releasing_often():
        gone = weakref.ref(Node())
        release()

        assert gone() is None


def test_garbage_from_before_is_collected_before_the_block_begins():
    gone = weakref.ref(Node())
    with releasing_often():
        assert gone() is None


def test_after_the_block_all_objects_are_looked_through_again():
    kept = Node()
    with releasing_often():
        assert gc.get_freeze_count() > 0
    gone = weakref.ref(kept)
    del kept

    release()

    assert gc.get_freeze_count() == 0
    assert gone() is None


def test_objects_that_a_script_has_frozen_stay_frozen():
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        with releasing_often():
            pass

        assert gc.get_freeze_count() == before
    finally:
        gc.unfreeze()
