"""The thread that reads ahead: it ends with its consumer, and hides no error."""

import contextlib
import gc
import os
import subprocess
import sys
import threading
import time
import traceback
import weakref
from pathlib import Path

import numpy as np
import pytest
from streaming.cases import Grouped

from memfit.measure.peak import read_tree_bytes
from memfit.streaming.data.layout import Layout
from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.settings import LoaderSettings
from memfit.streaming.open_data import open_data

MB = 1_000_000


class Failing(Grouped):
    """Fails in the middle of the data."""

    def read(self, start, stop):
        if start > 500:
            raise OSError("the cable is out")
        return super().read(start, stop)


class Slow(Grouped):
    """Notes how many rows were read."""

    num_read = 0

    def read(self, start, stop):
        self.num_read += stop - start
        return super().read(start, stop)


def make_loader(source, **settings):
    return Loader(
        source,
        Layout(("x", "y")),
        LoaderSettings(**{"batch_size": 8, "budget_bytes": 3_100_000, **settings}),
    )


def count_files():
    return len(list(Path("/proc/self/fd").iterdir()))


def readers():
    return [one for one in threading.enumerate() if one.name == "memfit-stream"]


def test_an_error_in_the_thread_is_raised_with_its_own_traceback():
    batches = make_loader(Failing()).run()

    with pytest.raises(OSError, match="the cable is out") as caught:
        list(batches)

    lines = [frame.line for frame in traceback.extract_tb(caught.tb)]
    assert 'raise OSError("the cable is out")' in lines
    assert readers() == []


def test_a_slow_consumer_is_waited_for():
    source = Slow()
    loader = make_loader(source)
    batches = loader.run()
    next(batches)

    time.sleep(0.2)

    assert source.num_read <= 2 * loader.mixing.window_rows < source.num_rows / 2
    batches.close()
    assert readers() == []


def test_a_forgotten_iterator_ends_its_thread():
    batches = make_loader(Grouped()).run()
    next(batches)
    assert len(readers()) == 1

    del batches

    assert readers() == []


def test_an_interrupted_loop_ends_its_thread():
    def loop():
        for _ in make_loader(Grouped()).run():
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):  # its traceback knows the loop: forget it
        loop()

    assert readers() == []


def test_a_thousand_epochs_leave_nothing_behind(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((64, 4)))
    loader = Loader(*open_data(tmp_path / "x.npy"), LoaderSettings(8, 4 * MB, seed=1))
    for _ in range(50):
        list(loader.run())
    before_bytes, files = read_tree_bytes(), count_files()

    for epoch in range(1000):
        for number, _ in enumerate(loader.run()):
            if number == epoch % 10:
                break

    assert readers() == []
    assert count_files() == files
    assert read_tree_bytes() - before_bytes < 3 * MB


def test_batches_are_never_used_again():
    """torch and JAX go on using the memory of arrays that they were given."""
    kept, copies = [], []
    for _, y in make_loader(Grouped()).run():
        kept.append(y)
        copies.append(y.copy())

    assert all(np.array_equal(one, other) for one, other in zip(kept, copies, strict=True))


def test_a_batch_that_is_let_go_is_freed():
    batches = make_loader(Grouped()).run()
    first = weakref.ref(next(batches)[0])
    next(batches)
    gc.collect()

    assert first() is None


PEAK = """
import numpy as np, sys
from memfit.streaming.open_data import open_data
from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.settings import LoaderSettings
from memfit.measure.peak import Peak, read_tree_bytes
budget = int(sys.argv[2])
list(Loader(*open_data(np.zeros((9, 2))), LoaderSettings(2, 4_000_000, seed=1)).run())
loader = Loader(*open_data(sys.argv[1]), LoaderSettings(64, budget, seed=1))
idle = read_tree_bytes()
with Peak() as peak:
    for x in loader.run():
        pass
    print(peak.read() - idle, loader.mixing.planned_bytes)
"""


@pytest.mark.measures
@pytest.mark.parametrize("budget_bytes", [6 * MB, 24 * MB])
def test_the_measured_peak_stays_within_the_budget(tmp_path, budget_bytes):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((60_000, 100), "float32"))
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(tmp_path / "x.npy"), str(budget_bytes)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4] / "src")},
        capture_output=True,
        text=True,
        check=True,
    )

    peak_bytes, planned_bytes = map(int, done.stdout.split())

    assert peak_bytes <= budget_bytes
    assert 0.5 * budget_bytes <= planned_bytes <= budget_bytes
