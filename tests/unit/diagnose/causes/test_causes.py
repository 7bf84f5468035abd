"""From evidence to causes: each tells itself from the others."""

import dataclasses

import pytest
from builders import MB, header, inside, outside, trained
from msgspec import structs

from memfit.diagnose.diagnosis import diagnose
from memfit.measure.malloc import AllocatorMemory
from memfit.record.evidence import (
    Allocated,
    Buffer,
    Called,
    Hinted,
    Holding,
    Loaded,
    Look,
    Made,
    RemedyTrial,
    Retraced,
)

GROWING = trained([(500 + 20 * number) * MB for number in range(12)], epoch_s=10)
STEADY = trained([500 * MB] * 12, epoch_s=10)
TIMES = (30.0, 60.0, 90.0, 118.0)


def diagnosed(*evidence, recording=GROWING, **changes):
    return diagnose(dataclasses.replace(recording, evidence=evidence, **changes))


def codes(*evidence, recording=GROWING, **changes):
    return [one.code for one in diagnosed(*evidence, recording=recording, **changes).findings]


def looks(**numbers):
    """Looks in which each number has the values given."""
    return [
        Look(t_s, "counts", 0.01, {name: values[at] for name, values in numbers.items()})
        for at, t_s in enumerate(TIMES)
    ]


def made(thing, alive=None, line=7, statement="thing = make()", count=40):
    return [
        Made(
            t_s,
            20.0,
            thing,
            2,
            2 + count * at // 3,
            alive[at] if alive else 0,
            "train.py",
            line,
            statement,
        )
        for at, t_s in enumerate(TIMES)
    ]


def test_train_graphs_in_the_gradient_registry_are_models_that_pile_up():
    evidence = [*looks(gradient_registry=(600, 620, 640, 660)), *made("model")]

    (finding,) = diagnosed(*evidence).findings

    assert (finding.code, finding.file, finding.line) == ("accumulating-models", "train.py", 7)
    assert "from 600 to 660 entries" in finding.message
    assert "keras#20552" in finding.notes[0]


@pytest.mark.parametrize("alive", [None, (10, 20, 30, 40)], ids=["registry", "alive"])
def test_models_that_a_tuner_has_made_are_let_go_around_its_trials(alive):
    rising = {} if alive else {"gradient_registry": (600, 620, 640, 660)}
    by_tuner = [structs.replace(one, by_tuner=True) for one in made("model", alive)]

    (finding,) = diagnosed(*looks(**rising), *by_tuner).findings

    assert finding.code == "accumulating-models"
    assert "override run_trial" in finding.fix
    assert "the loop" not in finding.fix


def test_a_registry_that_stands_still_accuses_no_model():
    evidence = [*looks(gradient_registry=(600, 600, 600, 600)), *made("model")]

    assert codes(*evidence) == ["unexplained-growth"]


def test_what_belongs_to_models_that_pile_up_is_not_reported_again():
    alive = (10, 20, 30, 40)
    evidence = [
        *looks(gradient_registry=(600, 620, 640, 660)),
        *made("model"),
        *made("optimizer", alive, line=9),
        *made("function", alive, line=10),
    ]

    assert codes(*evidence) == ["accumulating-models"]


def test_data_from_python_in_the_default_graph_is_datasets_that_pile_up():
    evidence = [*looks(py_functions=(4, 8, 12, 16)), *made("dataset")]

    assert codes(*evidence) == ["accumulating-datasets"]


@pytest.mark.parametrize(
    ("thing", "count", "code"),
    [
        ("figure", "figures", "accumulating-figures"),
        ("thread", "threads", "accumulating-threads"),
        ("writer", "files", "accumulating-writers"),
        ("iterator", "threads", "accumulating-iterators"),
        ("optimizer", "files", "accumulating-optimizers"),
    ],
)
def test_things_of_which_more_and_more_are_alive_pile_up(thing, count, code):
    evidence = [*looks(**{count: (5, 15, 25, 42)}), *made(thing, (3, 15, 28, 41))]

    found = diagnosed(*evidence).findings

    assert [(one.code, one.line) for one in found] == [(code, 7)]


def test_what_is_let_go_after_the_script_has_piled_up():
    """pyplot closes all figures when Python ends, before the last look."""
    evidence = [*looks(figures=(5, 15, 25, 0)), *made("figure", (3, 15, 28, 41))]

    assert codes(*evidence) == ["accumulating-figures"]


@pytest.mark.parametrize(
    ("changed", "first"), [("", "accumulating-optimizers"), ("n: 1, then 2", "retracing")]
)
def test_compilations_for_no_known_reason_come_after_what_piles_up(changed, first):
    retraced = Retraced(
        118.0, 20.0, "add", "train.py", 9, 2, 12, 1, "solver.apply(g)", changed, "jax.jit"
    )

    found = codes(retraced, *looks(files=(5, 5, 5, 5)), *made("optimizer", (3, 15, 28, 41)))

    assert sorted(found) == ["accumulating-optimizers", "retracing"]
    assert found[0] == first


def test_things_that_come_and_go_do_not_pile_up():
    assert codes(*looks(files=(9, 9, 9, 9)), *made("iterator", (1, 2, 3, 3))) == [
        "unexplained-growth"
    ]


def test_a_tape_that_records_through_many_steps_keeps_the_graph():
    tape = made("tape", (1, 1, 1, 1), statement="with tf.GradientTape() as tape:", count=0)

    (finding,) = diagnosed(*looks(long_tapes=(1, 1, 1, 1)), *tape).findings

    assert (finding.code, finding.line) == ("held-graph", 7)
    assert "inside the loop" in finding.fix


def buffer(stage, held, full, **more):
    return Buffer(
        118.0, stage, held * MB, full * MB, file="train.py", line=5, statement="ds = ds", **more
    )


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (buffer("shuffle", 20, 400, length=1500, of_batches=True), "shuffle(1,500) comes after"),
        (buffer("prefetch", 80, 400, length=200), "prefetch(200) keeps 200 elements ready"),
        (buffer("queue", 80, 400, length=100), "max_queue_size=100 keeps 100 batches ready"),
    ],
)
def test_a_buffer_is_too_large_before_it_is_full(one, words):
    (finding,) = diagnosed(one, recording=STEADY).findings

    assert (finding.code, finding.line) == ("buffer-too-large", 5)
    assert words in finding.message
    assert "400 MB" in finding.message
    assert "So far it holds" in finding.message
    assert finding.share is None  # memory does not grow


@pytest.mark.parametrize(
    "one",
    [
        buffer("shuffle", 300, 400, length=50_000),
        buffer("prefetch", 80, 80, length=2),
        buffer("cache", 300, 300),
        buffer("shuffle", 3, 4, length=1500, of_batches=True),
    ],
)
def test_a_buffer_that_is_worth_its_memory_is_not_reported(one):
    assert codes(one, recording=STEADY) == []


def test_a_buffer_that_takes_much_of_the_limit_is_reported_whatever_it_is_for():
    one = buffer("shuffle", 300, 400, length=50_000)

    assert codes(one, recording=STEADY, header=header(1000 * MB)) == ["buffer-too-large"]


def test_a_cache_after_repeat_grows_without_end():
    held = [
        Buffer(t_s, "cache", (100 + 20 * at * 3) * MB, after_repeat=True, file="train.py", line=5)
        for at, t_s in enumerate(TIMES)
    ]

    (finding,) = diagnosed(*held).findings

    assert finding.code == "buffer-too-large"
    assert finding.fix == (
        "Cache first, then repeat: dataset.cache().repeat(). A cache keeps what stands before it, "
        "so random maps (and shuffle) belong after it: before it, every epoch gets the same."
    )
    assert finding.share > 0.7


def test_data_that_is_held_whole_is_a_note_while_there_is_room():
    loaded = Loaded(5.0, "from_tensor_slices", 150 * MB, 150 * MB, "train.py", 3, "ds = ...")

    diagnosis = diagnosed(loaded, recording=STEADY)

    (finding,) = diagnosis.findings
    assert (finding.code, finding.line, finding.is_problem) == ("data-in-memory", 3, False)
    assert not diagnosis.has_problem


def test_data_that_is_held_whole_is_a_problem_where_there_is_little_room():
    loaded = Loaded(5.0, "fit", 150 * MB, 150 * MB, "train.py", 3, "model.fit(x, y)")

    (finding,) = diagnosed(loaded, recording=STEADY, header=header(900 * MB)).findings

    assert finding.is_problem


def test_garbage_is_reported_where_the_collector_is_off_and_a_collection_proves_it():
    trial = RemedyTrial(100.0, "collect", 700 * MB, 560 * MB, 0.2, 9000, {"Node": 5000})
    off = Called(100.0, "gc.disable", 1, "train.py", 2, "gc.disable()")

    (finding,) = diagnosed(*looks(collector_off=(1, 1, 1, 1)), trial, off).findings

    assert (finding.code, finding.line) == ("uncollected-garbage", 2)
    assert "5,000 Node" in finding.message
    assert finding.after == ""  # the line goes


def test_a_collection_that_frees_little_proves_nothing():
    trial = RemedyTrial(100.0, "collect", 700 * MB, 698 * MB, 0.2, 9000, {"Node": 5000})

    assert codes(*looks(collector_off=(1, 1, 1, 1)), trial) == ["unexplained-growth"]


def test_what_malloc_keeps_is_reported_with_the_proof():
    levels = [(500 + 20 * number) * MB for number in range(30)]
    recording = trained(levels, frees_bytes=[20 * number * MB for number in range(30)])
    trial = RemedyTrial(150.0, "trim", 700 * MB, 600 * MB, 0.01)

    (finding,) = diagnosed(trial, recording=recording).findings

    assert finding.code == "allocator-retains"
    assert finding.confidence == "certain"
    assert "malloc_trim freed 100 MB" in finding.message


def test_pages_of_files_are_a_note_and_no_leak():
    samples = tuple(
        outside(float(t), 500 * MB, file_bytes=(50 + 10 * t) * MB) for t in range(0, 40, 2)
    )
    mapped = Holding(
        5.0, 5.0, "tokens of Corpus", "memmap", 1, 1, 0, "memmap", file="data.py", line=4
    )
    recording = dataclasses.replace(STEADY, outside=samples, inside=(), marks=(), end_t_s=40.0)

    diagnosis = diagnosed(mapped, recording=recording)

    (finding,) = diagnosis.findings
    assert (finding.code, finding.file, finding.line) == ("file-pages", "data.py", 4)
    assert not finding.is_problem
    assert not diagnosis.has_problem


def test_workers_that_grow_are_reported_with_who_made_them():
    samples = tuple(
        structs.replace(
            outside(float(t), 500 * MB, children=(200 * MB, 200 * MB)),
            children_own_bytes=(20 + 4 * t) * MB,
        )
        for t in range(0, 120, 2)
    )
    # At the end one is gone, and the other nearly.
    last = structs.replace(outside(120.0, 500 * MB, children=(9 * MB,)), children_own_bytes=7 * MB)
    recording = dataclasses.replace(STEADY, outside=(*samples, last))

    (finding,) = diagnosed(*made("loader"), recording=recording).findings

    assert (finding.code, finding.line) == ("workers-copy", 7)
    assert "2 worker processes" in finding.message


def test_numbers_that_tensorflow_keeps_are_reported_with_their_line():
    one = Allocated(100.0, 0.8, "scalar", 700_000, 1000, "train.py", 6, "y = x * rate()")

    assert codes(one) == ["eager-constants"]


def test_tensors_that_stay_with_no_known_holder_are_reported_by_the_line_that_made_them():
    one = Allocated(100.0, 0.8, "tensor", 3 * MB, 12, "train.py", 6, "y = model(x)")

    (finding,) = diagnosed(one).findings

    assert (finding.code, finding.line) == ("held-tensors", 6)
    assert "what keeps them was not found" in finding.message


def test_compiled_code_that_piles_up_without_a_trace_is_retracing():
    assert codes(*looks(executables=(10, 30, 50, 70))) == ["retracing"]


def test_what_is_not_known_is_said_and_nothing_else():
    (finding,) = diagnosed().findings

    assert finding.code == "unexplained-growth"
    assert "no cause was found" in finding.message
    assert finding.confidence == "possible"


def test_shares_of_several_causes_and_the_rest_add_up():
    holding = Holding(
        118.0,
        20.0,
        "kept (global of train.py)",
        "list",
        2,
        40,
        90 * MB,
        "array",
        "f4 (1,)",
        "train.py",
        3,
        "kept.append(x)",
    )
    retraced = Retraced(
        118.0, 20.0, "step", "train.py", 9, 2, 80, 1, "step(x, 1)", "n: 1, then 2", "tf.function"
    )

    found = diagnosed(holding, retraced).findings

    assert {one.code for one in found} == {"held-tensors", "retracing"}
    assert sum(one.share for one in found) == pytest.approx(1.0, abs=0.01)


def test_a_steady_run_has_no_cause_whatever_was_counted():
    evidence = [*looks(executables=(10, 30, 50, 70), files=(1, 9, 20, 30)), *made("model")]

    assert codes(*evidence, recording=STEADY) == []


def test_a_view_is_fixed_by_a_copy():
    holding = Holding(
        118.0,
        20.0,
        "rows (global of train.py)",
        "list",
        2,
        40,
        170 * MB,
        "view",
        "f4 (1,)",
        "train.py",
        3,
        "rows.append(batch[0])",
    )

    (finding,) = diagnosed(holding).findings

    assert "keeps the whole array alive" in finding.message
    assert finding.after == "rows.append(batch[0].copy())"


def test_a_remedy_that_does_not_help_is_answered():
    calls = Called(118.0, "gc.collect", 12, "train.py", 31, "gc.collect()")
    hint = Hinted(0.0, "MF401", "folklore", "train.py", 31, "gc.collect() in each epoch")
    holding = Holding(
        118.0,
        20.0,
        "kept (global of train.py)",
        "list",
        2,
        40,
        170 * MB,
        "array",
        "f4 (1,)",
        "train.py",
        3,
        "kept.append(x)",
    )

    (finding,) = diagnosed(calls, hint, holding).findings

    assert any("gc.collect() ran 12 times" in note for note in finding.notes)


def test_tensorflows_pool_is_reported_where_nothing_else_explains_the_growth():
    from memfit.backends.devices import DeviceMemory

    samples = [
        structs.replace(
            inside(10.0 * number, (500 + 20 * number) * MB),
            allocator=AllocatorMemory(400 * MB, 0, (300 if number > 4 else 100) * MB),
            devices=(DeviceMemory("CPU:0", 5 * MB, on_host=True),),
        )
        for number in range(1, 13)
    ]

    (finding,) = diagnosed(inside=tuple(samples)).findings

    assert finding.code == "allocator-retains"
    assert "TF_ONEDNN_USE_SYSTEM_ALLOCATOR=1" in finding.fix
