"""The collector is paused while memfit's thread works, and is what the script wants otherwise."""

import gc
import os
import signal

import pytest

from memfit.agent import gc_pause


@pytest.fixture(autouse=True)
def restored():
    before = (gc.disable, gc.enable, gc.isenabled)
    gc_pause.watch()
    yield
    gc.disable, gc.enable, gc.isenabled = before
    gc.enable()


def test_a_pause_turns_it_off_and_on_again():
    with gc_pause.paused():
        assert not gc_pause._is_enabled()
        assert gc.isenabled()  # as far as the script is concerned

    assert gc_pause._is_enabled()


def test_a_collector_that_the_script_turned_off_stays_off():
    gc.disable()

    with gc_pause.paused():
        pass

    assert not gc.isenabled()
    assert not gc_pause._is_enabled()


@pytest.mark.parametrize(("wish", "is_on"), [("disable", False), ("enable", True)])
def test_what_the_script_says_during_a_pause_holds_after_it(wish, is_on):
    if is_on:
        gc.disable()
    with gc_pause.paused():
        getattr(gc, wish)()
        assert gc.isenabled() == is_on
        assert not gc_pause._is_enabled()

    assert gc_pause._is_enabled() == is_on


def test_a_pause_inside_a_pause_ends_with_the_outer_one():
    with gc_pause.paused():
        with gc_pause.paused():
            pass
        assert not gc_pause._is_enabled()

    assert gc_pause._is_enabled()


def test_an_error_ends_the_pause():
    with pytest.raises(ValueError, match="x"), gc_pause.paused():
        raise ValueError("x")

    assert gc_pause._is_enabled()


def test_a_fork_during_a_pause_leaves_the_collector_on_in_the_child():
    with gc_pause.paused():
        pid = os.fork()
        if pid == 0:
            gc_pause.after_fork_in_child()
            os._exit(0 if gc_pause._is_enabled() and gc.isenabled() else 1)
        _, status = os.waitpid(pid, 0)

    assert status == 0


def test_a_lock_that_was_held_at_a_fork_holds_up_nothing_in_the_child():
    with gc_pause._lock:
        pid = os.fork()
        if pid == 0:
            signal.alarm(5)  # a deadlock would end by this
            gc_pause.after_fork_in_child()
            gc.disable()
            os._exit(0)
        _, status = os.waitpid(pid, 0)

    assert status == 0
