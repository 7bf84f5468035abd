"""Traces are compared with the first look, by the line where a function is written."""

import sys
from types import SimpleNamespace

import pytest

from memfit.agent.tracings import Tracings


@pytest.fixture
def functions(monkeypatch):
    """What the adapter of JAX says is alive; its own framework is not loaded."""
    from memfit.backends import jax as adapter

    alive = []
    monkeypatch.setattr(adapter, "compiled_functions", lambda: alive)
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace())
    return alive


def function(traces, file="/home/me/train.py", line=8, name="step"):
    from memfit.backends import CompiledFunction

    return CompiledFunction(name, file, line, traces)


def test_more_traces_than_at_first_are_told(functions):
    tracings = Tracings()
    functions[:] = [function(2)]
    tracings.look(1.0, ["jax"])

    functions[:] = [function(12)]
    (told,) = tracings.look(5.0, ["jax"])

    assert (told.traces_before, told.traces, told.since_t_s, told.functions) == (2, 12, 1.0, 1)


def test_a_few_traces_are_in_good_order(functions):
    tracings = Tracings()
    functions[:] = [function(1)]
    tracings.look(1.0, ["jax"])

    functions[:] = [function(3)]

    assert tracings.look(5.0, ["jax"]) == []


def test_functions_made_at_one_line_are_counted_together(functions):
    tracings = Tracings()
    tracings.look(1.0, ["jax"])

    functions[:] = [function(1) for _ in range(9)]
    (told,) = tracings.look(5.0, ["jax"])

    assert (told.traces, told.functions) == (9, 9)


def test_functions_of_libraries_are_not_the_persons_doing(functions):
    tracings = Tracings()
    tracings.look(1.0, ["jax"])

    functions[:] = [function(50, file=pytest.__file__)]

    assert tracings.look(5.0, ["jax"]) == []


def test_a_framework_that_is_not_loaded_is_not_asked(functions):
    functions[:] = [function(50)]

    assert Tracings().look(1.0, []) == []
