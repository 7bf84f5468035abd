"""What lint said before, beside what was found; and what does not help, answered."""

from dataclasses import replace

import pytest
from msgspec import structs

from memfit.diagnose.annotate import answer_folklore, cite, stream_instead
from memfit.diagnose.causes.finding import Finding
from memfit.record.evidence import Called, Hinted

DELETED = (
    "del tape in train_step runs once, while tf.function traces it; it frees nothing at a step"
)


def found(code="held-tensors", line=14, file="train.py", **more):
    return Finding(code, "It grows.", "certain", "Let go.", file=file, line=line, **more)


def hinted(code="MF201", cause="held-tensors", line=14, file="train.py", message="kept"):
    return Hinted(1.0, code, cause, file, line, message)


def called(function="gc.collect", calls=12, line=31, t_s=1.0):
    return Called(t_s, function, calls, "train.py", line)


def notes(finding, hints=(), calls=()):
    (answered,) = answer_folklore([finding], hints, calls)
    return answered.notes


# Citing


@pytest.mark.parametrize(
    ("line", "codes"), [(14, ("MF201",)), (12, ("MF201",)), (16, ("MF201",)), (17, ()), (11, ())]
)
def test_a_hint_near_the_finding_is_cited(line, codes):
    elsewhere = hinted("MF203", line=200)

    assert cite(found(line=14), [hinted(line=line), elsewhere]).lint == codes


def test_the_only_hint_of_a_cause_is_cited_wherever_it_stands():
    assert cite(found(line=14), [hinted(line=200)]).lint == ("MF201",)
    assert cite(found(line=None), [hinted(line=200)]).lint == ("MF201",)


def test_a_hint_on_another_file_is_not_cited():
    assert cite(found(), [hinted(file="data.py")]).lint == ()


def test_a_finding_without_a_place_cites_nothing():
    assert cite(found(file=None, line=None), [hinted()]).lint == ()


def test_a_hint_of_another_cause_is_not_cited():
    assert cite(found(), [hinted("MF101", "buffer-too-large")]).lint == ()


@pytest.mark.parametrize(
    ("code", "cause"),
    [("held-graph", "held-tensors"), ("retracing", "accumulating-functions")],
)
def test_a_hint_of_a_related_cause_is_cited_only_where_it_is_near(code, cause):
    assert cite(found(code), [hinted("MF999", cause, line=15)]).lint == ("MF999",)
    assert cite(found(code), [hinted("MF999", cause, line=99)]).lint == ()


def test_every_code_is_cited_once_and_in_order():
    hints = [hinted("MF203"), hinted("MF201"), hinted("MF201", line=15), hinted("MF403", None)]

    assert cite(found(lint=("MF207",)), hints).lint == ("MF201", "MF203", "MF207")


# What does not help


def test_collecting_garbage_is_answered_with_its_count_and_place():
    finding = found(holder="losses (global of train.py)")

    assert notes(finding, calls=[called()]) == (
        "gc.collect() ran 12 times (train.py:31), but memory still grew: the growth is "
        "held by a name, not garbage.",
    )


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("retracing", "traces, which are never freed"),
        ("buffer-too-large", "a buffer of the data pipeline"),
        ("data-in-memory", "the data itself"),
        ("accumulating-models", "still in use"),
    ],
)
def test_what_grows_is_said_by_the_code_of_the_finding(code, words):
    (note,) = notes(found(code), calls=[called()])

    assert note.endswith(f"{words}, not garbage.")


def test_where_garbage_is_the_cause_collecting_it_is_not_called_useless():
    calls = [called(), called("clear_session")]

    assert notes(found("uncollected-garbage"), [hinted("MF502", "folklore")], calls) == ()


def test_clearing_the_session_is_answered_with_what_it_does():
    assert notes(found(), calls=[called("clear_session", 8, 40)]) == (
        "keras.backend.clear_session() ran 8 times (train.py:40): it frees nothing during fit, "
        "made epochs 3.4 times slower in our test, and silently resets the dtype policy and the "
        "seed.",
    )


def test_clearing_the_session_between_models_is_answered_with_what_it_frees():
    (note,) = notes(found("accumulating-models"), calls=[called("clear_session", 8, 40)])

    assert "left 9.7 MB without it and 8.0 MB with it" in note


@pytest.mark.parametrize(("calls", "is_answered"), [(2, False), (3, True)])
def test_a_call_or_two_is_no_habit(calls, is_answered):
    assert bool(notes(found(), calls=[called(calls=calls)])) is is_answered


def test_the_newest_count_of_each_line_counts():
    calls = [called(calls=1), called(calls=2, line=60), called(calls=5, t_s=2.0)]

    (note,) = notes(found(), calls=calls)

    assert note.startswith("gc.collect() ran 7 times (train.py:31, train.py:60), but")


def test_a_hint_speaks_where_no_call_was_counted():
    (note,) = notes(found(), [hinted("MF502", "folklore", 31)])

    assert note.startswith("gc.collect() (train.py:31) takes about 0.2 s and frees only cycles:")


def test_clearing_at_every_epoch_is_answered_from_the_hint_alone():
    (note,) = notes(found(), [hinted("MF501", "folklore", 40)])

    assert note.startswith(
        "keras.backend.clear_session() (train.py:40) frees nothing during fit, made"
    )


def test_what_a_hint_and_a_count_both_tell_is_said_once():
    hints = [hinted("MF501", "folklore", 40), hinted("MF502", "folklore", 31)]
    calls = [called(), called("clear_session", 8, 40)]

    assert [note.split(" ran ")[0] for note in notes(found(), hints, calls)] == [
        "gc.collect()",
        "keras.backend.clear_session()",
    ]


def test_deleting_inside_a_compiled_function_is_answered():
    (note,) = notes(found(), [hinted("MF503", "folklore", 22, message=DELETED)])

    assert note.startswith(f"{DELETED} (train.py:22). In our test,")


def test_many_places_are_cut_short():
    hints = [hinted("MF502", "folklore", line) for line in range(1, 9)]

    (note,) = notes(found(), hints)

    assert "(train.py:1, train.py:2, train.py:3, ...)" in note


def test_only_the_first_growth_is_answered():
    killed, calm = found("killed"), found("page-cache", is_problem=False)
    first, second = found("retracing"), found(notes=("Known.",))

    answered = answer_folklore([killed, calm, first, second], (), [called()])

    assert [len(one.notes) for one in answered] == [0, 0, 1, 1]


def test_a_note_that_is_there_is_kept_and_not_said_again():
    (once,) = answer_folklore([found(notes=("Known.",))], (), [called()])

    (twice,) = answer_folklore([once], (), [called()])

    assert twice == once
    assert once.notes[0] == "Known."


@pytest.mark.parametrize("code", ["killed", "near-limit"])
def test_without_growth_nothing_is_answered(code):
    assert notes(found(code), calls=[called()]) == ()
    assert answer_folklore([], (), [called()]) == ()


def test_a_script_without_such_habits_gets_no_notes():
    assert notes(found(), [hinted()], [called("gc.disable")]) == ()


def test_data_in_memory_is_reported_with_the_stream_for_its_files():
    stream = "data = memfit.stream(('x.npy', 'y.npy'), batch_size=32, shuffle=True)"
    finding = Finding("data-in-memory", "...", "certain", "Stream it.", file="train.py", line=9)
    hint = Hinted(1.0, "MF104", "data-in-memory", "train.py", 9, "...", stream)

    assert stream_instead(finding, [hint]).fix == f"Stream it from disk: {stream}."
    assert stream_instead(finding, [structs.replace(hint, fix=None)]) == finding
    assert stream_instead(finding, [structs.replace(hint, file="other.py")]) == finding
    assert stream_instead(replace(finding, code="retracing"), [hint]).fix == "Stream it."
