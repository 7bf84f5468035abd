"""Locals of running functions are read, and the functions do not notice."""

import sys
import threading
import time

import pytest

from memfit.heap.holders import find_held
from memfit.user_code.frame_locals import read_locals


def test_arguments_variables_cells_and_closures_are_read():
    outer = ["closure"]

    def running(argument, *rest, option=3, **more):
        assigned = "assigned"
        shared = [assigned]
        gone = "gone"
        del gone
        _ = lambda: (shared, outer)  # noqa: E731
        return read_locals(sys._getframe())

    found = running(1, 2, word=4)

    found.pop("_")
    assert found == {
        "argument": 1,
        "rest": (2,),
        "option": 3,
        "more": {"word": 4},
        "assigned": "assigned",
        "shared": ["assigned"],
        "outer": ["closure"],
    }


def test_a_variable_without_a_value_is_left_out():
    def running():
        found = read_locals(sys._getframe())
        later = 1
        return found, later

    assert running()[0] == {}


def test_a_function_that_ended_with_an_error_is_read():
    def fails():
        held = ["by the traceback"]
        raise ValueError(held)

    with pytest.raises(ValueError, match="traceback") as caught:
        fails()

    assert read_locals(caught.tb.tb_next.tb_frame) == {"held": ["by the traceback"]}


def test_a_module_and_a_class_body_have_no_locals_of_their_own():
    seen = []
    exec("look(read(here()))", {"look": seen.append, "read": read_locals, "here": sys._getframe})

    class Body:
        seen.append(read_locals(sys._getframe()))

    assert seen == [{}, {}]


def test_the_dict_that_a_function_got_from_locals_is_left_as_it_was():
    def running():
        first = 1
        config = locals()
        later = 2
        list(find_held(1.0))
        return dict(config), first + later

    assert running()[0] == {"first": 1}


def test_exec_eval_and_locals_work_while_another_thread_looks():
    """NumPy's f2py is imported with `eval('lambda v,f=f:not f(v)')`, which a look once broke."""
    is_over = threading.Event()

    def look():
        while not is_over.is_set():
            list(find_held(0.05))

    looking = threading.Thread(target=look)
    looking.start()
    until_s = time.monotonic() + 1.0
    num_calls = 0
    try:
        while time.monotonic() < until_s:
            assert uses_its_locals(num_calls) == (num_calls, num_calls, [num_calls])
            num_calls += 1
    finally:
        is_over.set()
        looking.join()

    assert num_calls > 100


def uses_its_locals(number):
    a, b = number, [number]
    namespace = locals()
    namespace["added"] = b
    exec("b[0] += 0")
    return eval("(lambda f=a: f)()"), namespace["a"], namespace["added"]
