"""A user's own code for each batch: in order, counted, and its errors passed on."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from streaming.cases import NUM_ROWS, WIDTH, Grouped, features_of
from streaming.ingest.test_ingest import Sentences

from memfit.backends.feeds import Spec
from memfit.errors import BudgetError, UsageError
from memfit.streaming.data.layout import Layout, lay_out
from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.map_batches import learn_mapping
from memfit.streaming.loader.settings import LoaderSettings
from memfit.streaming.open_data import open_data

MB = 1_000_000
BATCH = 32


def make_loader(function, source=None, layout=None, seed=1, **settings):
    source = source or Grouped()
    layout = layout or Layout(("x", "y"))
    wanted = LoaderSettings(BATCH, settings.pop("budget", 8 * MB), seed, **settings)
    return Loader(source, layout, wanted, learn_mapping(function, source, layout, BATCH))


def threads():
    return [one for one in threading.enumerate() if one.name.startswith("memfit-stream")]


def test_batches_are_mapped_and_keep_their_order():
    def slower_at_times(x, y):
        time.sleep(0.002 * (int(y[0]) % 3))
        return x * 2, y

    plain = Loader(Grouped(), Layout(("x", "y")), LoaderSettings(BATCH, 8 * MB, seed=1))
    loader = make_loader(slower_at_times)

    for _ in range(2):
        mapped = list(loader.run())
        expected = list(plain.run())
        assert len(mapped) == len(expected)
        for (x, y), (_, labels) in zip(mapped, expected, strict=True):
            assert np.array_equal(y, labels)
            assert np.array_equal(x, 2 * features_of(labels))


def test_it_runs_in_threads():
    seen = set()
    loader = make_loader(lambda x, y: (seen.add(threading.current_thread().name), (x, y))[1])
    seen.clear()

    list(loader.run())

    assert seen
    assert all(one.startswith("memfit-stream") for one in seen)
    assert threads() == []


def test_a_batch_by_its_number_is_mapped_too():
    assert make_loader(lambda x, y: (x, -y)).get(3)[1].max() <= 0


def test_inputs_alone_may_get_targets():
    loader = make_loader(lambda x: (x, x), layout=Layout(("x",)))

    x, y = next(loader.run())

    assert np.array_equal(x, y)


def test_targets_may_be_left_out():
    (x,) = next(make_loader(lambda x, y: x).run())

    assert x.shape == (BATCH, WIDTH)


def test_what_it_returns_is_known_before_training():
    source = Grouped()

    mapped = learn_mapping(
        lambda x, y: ({"a": x[:, :3].astype("float16"), "b": (y,)}, y > 5),
        source,
        Layout(("x", "y")),
        BATCH,
    )

    assert mapped.specs == (
        {
            "a": Spec((None, 3), np.dtype("float16")),
            "b": (Spec((None,), np.dtype("int64")),),
        },
        Spec((None,), np.dtype("bool")),
    )
    assert mapped.row_bytes == 6 + 8 + 1


def test_of_sequences_the_length_is_left_open():
    source = Sentences()
    mapped = learn_mapping(lambda x, y: (x + 1, y), source, lay_out(source.schema), BATCH)

    assert mapped.specs[0].shape == (None, None)
    loader = Loader(source, lay_out(source.schema), LoaderSettings(BATCH, 8 * MB, seed=1), mapped)
    assert sum(len(y) for _, y in loader.run()) == source.num_rows


def test_a_restored_stream_maps_from_there_on():
    loader, again = make_loader(lambda x, y: (x, -y)), make_loader(lambda x, y: (x, -y))
    batches = loader.run()
    for _ in range(5):
        next(batches)
    again.restore(loader.state().to_dict())

    assert np.array_equal(next(again.run())[1], next(batches)[1])
    batches.close()


def test_an_error_says_in_which_batch():
    def fails(x, y):
        if 700 in y:
            raise RuntimeError("out of paint")
        return x, y

    loader = make_loader(fails, seed=None)
    with pytest.raises(RuntimeError, match="out of paint") as caught:
        list(loader.run())

    assert caught.value.__notes__ == ["Raised in map= of memfit.stream, in epoch 0, batch 21."]
    assert threads() == []


def test_an_error_on_the_first_batch_comes_when_the_stream_is_made():
    with pytest.raises(ZeroDivisionError) as caught:
        make_loader(lambda x, y: (x, 1 / 0))

    assert caught.value.__notes__ == ["Raised in map= of memfit.stream, on the first 32 rows."]


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (3, "map must be a function of a batch. Received: 3."),
        (lambda x, y: (x[:5], y), r"as many rows as it is given. Received: .* \(5, 64\) for 32"),
        (lambda x, y: (x, y.mean()), r"as many rows as it is given. Received: .* shape \(\)"),
        (lambda x, y: (x, y, y, y), "Received: a tuple of 4."),
        (lambda x, y: (x, y.astype(object)), "Received: an array of objects."),
    ],
)
def test_what_cannot_be_a_batch_is_refused(function, told):
    with pytest.raises(UsageError, match=told):
        make_loader(function)


def test_every_batch_has_to_be_like_the_first():
    loader = make_loader(lambda x, y: (x, y if 500 not in y else y / 2), seed=None)

    with pytest.raises(UsageError) as caught:
        list(loader.run())

    assert str(caught.value) == (
        "map must return the same kind of arrays for every batch. Received: float32 (64,), "
        "float64 (). Expected, as for the first: float32 (64,), int64 ()."
    )


def test_what_it_returns_counts_for_the_least_budget():
    make_loader(lambda x, y: (x, y), budget=3_300_000)

    with pytest.raises(BudgetError):
        make_loader(lambda x, y: (np.repeat(x, 100, axis=1), y), budget=3_300_000)


def test_a_pass_that_is_left_ends_its_threads():
    batches = make_loader(lambda x, y: (x, y)).run()
    next(batches)
    assert threads()

    batches.close()

    assert threads() == []


def test_a_slow_consumer_is_waited_for():
    calls = []
    loader = make_loader(lambda x, y: (calls.append(1), (x, y))[1])
    calls.clear()
    batches = loader.run()
    next(batches)

    time.sleep(0.2)

    assert len(calls) <= 6 < len(loader)
    batches.close()


PEAK = """
import numpy as np, sys
from memfit.streaming.open_data import open_data
from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.settings import LoaderSettings
from memfit.streaming.loader.map_batches import learn_mapping
from memfit.measure.peak import Peak, read_tree_bytes
source, layout = open_data(sys.argv[1])
function = lambda x: x.astype("float32")
warm = learn_mapping(function, source, layout, 16)
list(Loader(source, layout, LoaderSettings(16, 24_000_000, 1), warm).run())
mapped = learn_mapping(function, source, layout, 1024)
idle = read_tree_bytes()
with Peak() as peak:
    kept = []
    for x in Loader(source, layout, LoaderSettings(1024, int(sys.argv[2]), 1), mapped).run():
        kept = [*kept[-1:], x]
    print(peak.read() - idle)
"""


@pytest.mark.measures
def test_the_measured_peak_stays_within_the_budget(tmp_path):
    """Batches of 0.5 MB become 2 MB each."""
    np.save(tmp_path / "x.npy", np.zeros((40_000, 500), "uint8"))
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(tmp_path / "x.npy"), str(24 * MB)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4] / "src")},
        capture_output=True,
        text=True,
        check=True,
    )

    assert int(done.stdout) <= 24 * MB


def test_a_split_maps_on_both_sides():
    source, layout = open_data((np.arange(NUM_ROWS), np.arange(NUM_ROWS)))
    loader = make_loader(lambda x, y: (x, -y), source, layout, budget=16 * MB)

    for side in loader.split(0.5):
        assert all((y <= 0).all() for _, y in side.run())
