"""Memory that runs out for real, in each place of a training, is recognised."""

import json
import subprocess
import sys

import pytest

from conftest import BACKENDS, SCRIPTS, two_at_a_time

PLACES = ("forward", "optimizer", "validation")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel must hold a limit")


def run(backend, where):
    return subprocess.run(
        [sys.executable, str(SCRIPTS / "exhaust.py"), backend, where],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def begun():
    with two_at_a_time(run, BACKENDS, PLACES) as all_of_them:
        yield all_of_them


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_allocation_that_fails_is_recognised(backend, where, begun):
    done = begun[backend, where].result()

    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert told["is_out_of_memory"], told
