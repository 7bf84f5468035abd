import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memfit.agent.phase_marks import JOINED_PHASES, Phases
from memfit.record.samples import Mark

LONG_PHASES = ("fit", "epoch", "validation")
PHASES = st.sampled_from([*LONG_PHASES, *sorted(JOINED_PHASES)])
CALLS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.3, 1.0, 5.0]),
        st.one_of(
            st.tuples(st.just("begin"), PHASES),
            st.tuples(st.just("end"), PHASES),
            st.tuples(st.just("touch"), st.sampled_from(sorted(JOINED_PHASES)), st.booleans()),
            st.tuples(st.just("settle")),
        ),
    ),
    max_size=30,
)


class Clock:
    def __init__(self):
        self.now_s = 100.0

    def __call__(self):
        return self.now_s

    def pass_s(self, duration_s):
        self.now_s += duration_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def marks():
    return []


@pytest.fixture
def phases(marks, clock):
    return Phases(marks.append, clock)


def play(calls):
    """Makes the calls, closes everything and returns the marks."""
    marks, clock = [], Clock()
    phases = Phases(marks.append, clock)
    for pause_s, (name, *arguments) in calls:
        clock.pass_s(pause_s)
        if name == "touch":
            phases.touch(arguments[0], is_active=arguments[1])
        else:
            getattr(phases, name)(*arguments)
    phases.end_all()
    return marks


@settings(deadline=None)
@given(CALLS)
def test_whatever_is_called_each_phase_ends_once_and_inside_the_one_around_it(calls):
    is_open = []

    for mark in play(calls):
        if mark.event == "begin":
            is_open.append((mark.phase, mark.number))
        else:
            assert is_open.pop() == (mark.phase, mark.number)

    assert is_open == []


@settings(deadline=None)
@given(CALLS)
def test_whatever_is_called_marks_are_in_the_order_of_time(calls):
    times = [mark.t_s for mark in play(calls)]

    assert times == sorted(times)


@settings(deadline=None)
@given(CALLS)
def test_whatever_is_called_no_call_is_lost_from_a_row(calls):
    made = [call for _, call in calls if call[0] in ("begin", "touch") and call[1] in JOINED_PHASES]

    marks = play(calls)

    ends = [mark for mark in marks if mark.event == "end" and mark.phase in JOINED_PHASES]
    assert sum(mark.calls for mark in ends) == len(made)


def test_calls_less_than_a_second_apart_are_one_phase(phases, marks, clock):
    for _ in range(3):
        phases.begin("predict")
        clock.pass_s(0.5)
        phases.end("predict")
        clock.pass_s(0.75)
    phases.end_all()

    assert marks == [
        Mark(100.0, "begin", "predict", 1),
        Mark(100.0 + 3 * 0.5 + 2 * 0.75, "end", "predict", 1, calls=3),
    ]


def test_a_call_a_second_after_the_last_is_a_phase_of_its_own(phases, marks, clock):
    phases.touch("train_on_batch", is_active=False)
    clock.pass_s(1.0)
    phases.touch("train_on_batch", is_active=False)

    assert marks == [
        Mark(100.0, "begin", "train_on_batch", 1),
        Mark(100.0, "end", "train_on_batch", 1),
        Mark(101.0, "begin", "train_on_batch", 2),
    ]


def test_a_row_that_is_over_ends_when_its_last_call_did(phases, marks, clock):
    phases.begin("evaluate")
    clock.pass_s(2.0)
    phases.end("evaluate")
    clock.pass_s(1.0)

    phases.settle()

    assert marks[-1] == Mark(102.0, "end", "evaluate", 1)


def test_a_row_may_go_on_within_a_second(phases, marks, clock):
    phases.begin("evaluate")
    phases.end("evaluate")
    clock.pass_s(0.9)

    phases.settle()

    assert [mark.event for mark in marks] == ["begin"]


def test_a_call_that_takes_long_is_not_taken_for_over(phases, marks, clock):
    phases.begin("evaluate")
    clock.pass_s(60.0)

    phases.settle()

    assert [mark.event for mark in marks] == ["begin"]


def test_another_kind_of_call_ends_a_row(phases, marks):
    phases.touch("train_on_batch", is_active=False)
    phases.touch("predict", is_active=False)

    assert [(mark.event, mark.phase) for mark in marks] == [
        ("begin", "train_on_batch"),
        ("end", "train_on_batch"),
        ("begin", "predict"),
    ]


def test_the_end_of_a_phase_ends_what_was_left_open_inside(phases, marks):
    phases.begin("fit")
    phases.begin("epoch", 3)
    phases.begin("validation")

    phases.end("fit")

    ends = [(mark.phase, mark.number) for mark in marks if mark.event == "end"]
    assert ends == [("validation", 1), ("epoch", 3), ("fit", 1)]


def test_the_end_of_a_phase_that_is_not_open_is_nothing(phases, marks):
    phases.begin("fit")

    phases.end("epoch")

    assert [mark.event for mark in marks] == ["begin"]


def test_each_phase_is_numbered_on_its_own(phases):
    numbers = []
    for phase in ("fit", "validation", "fit"):
        numbers.append(phases.begin(phase))
        phases.end(phase)

    assert numbers == [1, 1, 2]


def test_calls_of_one_row_have_one_number(phases, clock):
    numbers = []
    for pause_s in (0.0, 0.5, 2.0):
        clock.pass_s(pause_s)
        numbers.append(phases.begin("predict"))
        phases.end("predict")

    assert numbers == [1, 1, 2]


def test_a_phase_is_open_until_its_end(phases):
    before = phases.is_open("fit")
    phases.begin("fit")
    inside = phases.is_open("fit")
    phases.end("fit")

    assert [before, inside, phases.is_open("fit")] == [False, True, False]
