"""The collector is paused while memfit's thread works, and is what the script wants otherwise."""

import gc

import pytest

from memfit.agent import collector


@pytest.fixture(autouse=True)
def restored():
    before = (gc.disable, gc.enable, gc.isenabled)
    collector.watch()
    yield
    gc.disable, gc.enable, gc.isenabled = before
    gc.enable()


def test_a_pause_turns_it_off_and_on_again():
    with collector.paused():
        assert not collector._is_enabled()
        assert gc.isenabled()  # as far as the script is concerned

    assert collector._is_enabled()


def test_a_collector_that_the_script_turned_off_stays_off():
    gc.disable()

    with collector.paused():
        pass

    assert not gc.isenabled()
    assert not collector._is_enabled()


@pytest.mark.parametrize(("wish", "is_on"), [("disable", False), ("enable", True)])
def test_what_the_script_says_during_a_pause_holds_after_it(wish, is_on):
    if is_on:
        gc.disable()
    with collector.paused():
        getattr(gc, wish)()
        assert gc.isenabled() == is_on
        assert not collector._is_enabled()

    assert collector._is_enabled() == is_on


def test_a_pause_inside_a_pause_ends_with_the_outer_one():
    with collector.paused():
        with collector.paused():
            pass
        assert not collector._is_enabled()

    assert collector._is_enabled()


def test_an_error_ends_the_pause():
    with pytest.raises(ValueError, match="x"), collector.paused():
        raise ValueError("x")

    assert collector._is_enabled()
