"""`tokens`: what goes with it and what does not, what is refused, and how much memory it takes."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from streaming.sequences import LONGEST, NUM_ROWS, lengths_of, make_rows

from memfit.errors import UsageError
from memfit.streaming.data.ragged import Ragged
from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.settings import LoaderSettings
from memfit.streaming.open_data import open_data
from memfit.streaming.store.spool import find_folder, spool
from memfit.streaming.views.sequence_lengths import measure

TOKENS = 400
MB = 1_000_000


def make_loader(value, tokens=TOKENS, seed=1):
    source, layout = open_data(value)
    settings = LoaderSettings(None, 16 * MB, seed, tokens=tokens)
    return Loader(measure(source, tokens), layout, settings)


def test_a_row_is_as_long_as_the_longest_of_its_sequences():
    def make_pairs():
        for at in range(90):
            yield {"left": np.ones(at % 9), "right": np.ones(9 - at % 9), "alike": np.ones(50)}

    for (batch,) in make_loader(make_pairs, tokens=64).run():
        rows = len(batch["left"])
        assert rows * max(batch["left"].shape[1], batch["right"].shape[1]) <= 64
        assert batch["alike"].shape == (rows, 50)


@pytest.mark.parametrize("tokens", [0, -5, 2.5, "many", True])
def test_tokens_that_are_no_number_are_refused(tokens):
    with pytest.raises(UsageError, match=r"`tokens` must be a whole number, 1 or more"):
        LoaderSettings(None, 16 * MB, tokens=tokens)


@pytest.mark.parametrize("sizes", [{"batch_size": None}, {"batch_size": 32, "tokens": 512}])
def test_one_of_batch_size_and_tokens_is_needed(sizes):
    with pytest.raises(UsageError, match=r"Received: batch_size=.*Give one of the two"):
        LoaderSettings(budget_bytes=16 * MB, **sizes)


def test_a_remainder_cannot_be_dropped_where_batches_differ():
    with pytest.raises(UsageError, match="drop_remainder is for batches of one size"):
        LoaderSettings(None, 16 * MB, drop_remainder=True, tokens=512)


def test_batches_that_differ_are_not_dealt_to_shards():
    with pytest.raises(UsageError, match="Give batch_size"):
        make_loader(make_rows).shard(0, 2)


def test_data_without_sequences_is_refused():
    with pytest.raises(UsageError, match=r"rows all have the same shape. Give batch_size"):
        make_loader(np.zeros((9, 4)))


def test_rows_that_are_too_long_are_counted_and_the_longest_is_named():
    longest = int(lengths_of(range(NUM_ROWS)).argmax())
    number = int((lengths_of(range(NUM_ROWS)) > 50).sum())

    message = rf"{number} of {NUM_ROWS} rows .* row {longest}, has {LONGEST} steps. Give tokens=60"
    with pytest.raises(UsageError, match=message):
        make_loader(make_rows, tokens=50)


def test_a_state_of_other_tokens_is_refused():
    state = make_loader(make_rows).state().to_dict()
    loader = make_loader(make_rows, tokens=512)

    with pytest.raises(UsageError, match=r"made with tokens=400; this stream has tokens=512"):
        loader.restore({**state, "fingerprint": loader.state().fingerprint})


def test_a_state_of_a_version_with_other_orders_is_refused():
    loader = Loader(*open_data(np.arange(90.0)), LoaderSettings(8, 16 * MB))
    state = {**loader.state().to_dict(), "version": 1}

    with pytest.raises(UsageError, match="version 2"):
        loader.restore(state)


PEAK = """
import sys
from memfit.streaming.open_data import open_data
from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.settings import LoaderSettings
from memfit.streaming.views.sequence_lengths import measure
from memfit.measure.peak import Peak, read_tree_bytes

def run(budget_bytes, seed):
    source, layout = open_data(sys.argv[1])
    source = measure(source, 16_384)
    loader = Loader(source, layout, LoaderSettings(None, budget_bytes, seed, tokens=16_384))
    for _ in loader.run():
        pass

run(90_000_000, 0)
for budget_bytes, seed in ((12_000_000, 1), (12_000_000, None), (24_000_000, 1)):
    idle = read_tree_bytes()
    with Peak() as peak:
        run(budget_bytes, seed)
        print(peak.read() - idle)
"""


def make_chunks():
    """Rows of which the next is never shorter, 40 MB of them."""
    rng = np.random.default_rng(0)
    lengths = np.sort(rng.lognormal(5, 0.7, 50_000).astype(int).clip(1, 3000))
    for some in np.array_split(lengths, 20):
        offsets = np.concatenate(([0], np.cumsum(some)))
        yield {"x": Ragged(np.ones(offsets[-1], "int32"), offsets), "y": some}


@pytest.mark.measures
def test_the_peak_stays_within_the_budget_of_rows_sorted_by_length():
    spool(make_chunks(), "rows sorted by length")
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(find_folder("rows sorted by length"))],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4] / "src")},
        capture_output=True,
        text=True,
        check=True,
    )

    peaks = [int(one) / MB for one in done.stdout.split()]

    assert np.less_equal(peaks, [12, 12, 24]).all(), peaks
