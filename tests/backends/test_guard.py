"""Memory that runs out for real in a training: the same batch is run again, and nothing is lost."""

import functools
import json
import subprocess
import sys

import pytest

from conftest import BACKENDS, SCRIPTS, environment_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel must hold a limit")

HELPED = ("forward", "backward", "validation")
NOT_HELPED = {
    "optimizer": "no memory for what the optimizer keeps",
    "update": "no memory to update the weights",
}


@functools.cache
def run(backend):
    return subprocess.run(
        [sys.executable, str(SCRIPTS / "guarded.py"), backend],
        env=environment_of(backend),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(params=BACKENDS)
def results(request):
    """What the script says of each place, of one process for each backend."""
    done = run(request.param)
    assert done.returncode == 0, done.stderr[-3000:]
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {one["where"]: one for one in told}


@pytest.mark.parametrize("where", [*HELPED, *NOT_HELPED])
def test_the_training_ends_as_it_would_have_without_a_limit(results, where):
    result = results[where]

    assert result["differs"] < 1e-4
    ours, theirs = result["histories"]
    for name, values in theirs.items():
        assert ours[name] == pytest.approx(values, rel=1e-5), name


@pytest.mark.parametrize("where", HELPED)
def test_no_batch_is_taken_twice(results, where):
    # The first two are also looked at by Keras before it trains.
    assert results[where]["error"] is None
    assert results[where]["taken"].count(2) == 2


@pytest.mark.parametrize("where", HELPED)
def test_micro_batches_shrink_and_grow_back(results, where):
    told = results[where]["told"]

    assert "it is run again in micro-batches of" in told[0]
    assert any("enough memory for a while" in line for line in told)


@pytest.mark.parametrize("where", NOT_HELPED)
def test_what_micro_batches_cannot_help_is_raised_with_the_model_as_it_was(results, where):
    result = results[where]

    assert result["error"]["is_out_of_memory"]
    assert result["changed"] == 0
    (note,) = result["error"]["notes"]
    assert NOT_HELPED[where] in note
    assert "The model is as it was" in note


def test_an_update_that_may_fail_is_kept_in_a_file(results):
    assert results["update"]["kept"] == 2
