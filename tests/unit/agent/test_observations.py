"""What is made, compiled and called is counted by the user's own line."""

import ast
import gc
import sys

from memfit.agent.observations import Observations
from memfit.backends.events import Compilation
from memfit.record.evidence import Called, Loaded, Made, Retraced
from memfit.user_code.own_calls import own_call


class Thing:
    """Something that a script makes."""


def of(kind, observed, now_t_s=10.0):
    return [one for one in observed.find_new(now_t_s) if isinstance(one, kind)]


def test_things_made_in_a_loop_are_counted_at_their_line_with_how_many_are_alive():
    observed = Observations()
    kept = []

    def make():
        thing = Thing()
        observed.made("model", thing)
        return thing

    make()
    assert of(Made, observed) == []  # the first look is what others are compared with
    for number in range(6):
        thing = make()
        if number % 2:
            kept.append(thing)
    del thing

    (one,) = of(Made, observed)

    assert (one.thing, one.made_before, one.made, one.alive) == ("model", 1, 7, 3)
    assert one.file.endswith("test_observations.py")
    assert one.statement == "observed.made('model', thing)"


def test_observing_keeps_nothing_alive():
    observed = Observations()
    thing = Thing()
    observed.made("model", thing)
    assert observed.line_of(thing) is not None

    del thing

    assert not any(isinstance(one, Thing) for one in gc.get_objects())


def test_what_cannot_be_referred_to_weakly_is_counted_all_the_same():
    observed = Observations()
    for number in range(9):
        observed.made("file", (number,))
        if number == 0:
            list(observed.find_new(1.0))

    (one,) = of(Made, observed)

    assert (one.made, one.alive) == (9, 0)


def traced(observed, values, *, function_ids=(1,), name="step"):
    for number, value in enumerate(values):
        observed.compiled(
            Compilation(
                "tf.function",
                name,
                __file__,
                12,
                function_ids[number % len(function_ids)],
                {"x": "float32 (64, 8)", "rate": value},
            )
        )
        if number == 0:
            list(observed.find_new(1.0))


def test_a_function_compiled_again_is_reported_with_the_argument_that_changed():
    observed = Observations()
    traced(observed, [f"0.{number} (Python float)" for number in range(8)])

    (one,) = of(Retraced, observed)

    assert (one.name, one.traces_before, one.traces, one.functions) == ("step", 1, 8, 1)
    assert one.changed == "rate: 0.6 (Python float), then 0.7 (Python float)"
    assert one.compiler == "tf.function"


def test_a_new_function_handed_over_each_time_is_reported_in_words():
    observed = Observations()
    traced(observed, [f"<lambda> (object {number:#x})" for number in range(8)])

    (one,) = of(Retraced, observed)

    assert one.changed == "rate: a new <lambda> each time"


def test_a_few_compilations_are_in_good_order():
    observed = Observations()
    traced(observed, ["a", "b", "c"])

    assert of(Retraced, observed) == []


def test_a_function_of_a_library_has_no_name_of_its_own():
    observed = Observations()
    for number in range(8):
        observed.compiled(Compilation("jax.jit", "train_step", ast.__file__, 1, 1))
        if number == 0:
            list(observed.find_new(1.0))

    assert [one.name for one in of(Retraced, observed)] == [""]


def test_calls_count_where_the_users_own_code_makes_them():
    observed = Observations()
    for _ in range(4):
        observed.called("gc.collect", sys._getframe())

    (one,) = of(Called, observed)

    assert (one.function, one.calls) == ("gc.collect", 4)
    assert one.statement == "observed.called('gc.collect', sys._getframe())"


def test_what_memfit_does_for_itself_is_not_laid_to_the_line_that_waits_for_it():
    observed = Observations()
    with own_call():
        for _ in range(2):
            traced(observed, [str(number) for number in range(8)])
            for number in range(8):
                observed.made("dataset", (number,))
            observed.called("gc.collect", sys._getframe())
            observed.loaded("fit", 50_000_000, 50_000_000)

    assert list(observed.find_new(10.0)) == []


def test_a_collector_that_is_off_is_reported_with_the_line_that_turned_it_off(
    tmp_path, monkeypatch
):
    import importlib.util

    script = tmp_path / "quick.py"
    script.write_text("import gc\ngc.disable()\n")
    spec = importlib.util.spec_from_file_location("quick", script)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "quick", module)
    spec.loader.exec_module(module)
    try:
        found = [one for one in of(Called, Observations()) if one.file.endswith("quick.py")]
    finally:
        gc.enable()

    assert [(one.function, one.line) for one in found] == [("gc.disable", 2)]


def test_data_that_is_small_is_not_worth_a_word():
    observed = Observations()
    observed.loaded("fit", 1000, 1000)
    observed.loaded("fit", 50_000_000, 50_000_000)

    assert [one.size_bytes for one in of(Loaded, observed)] == [50_000_000]
