"""Memory that runs out for real, in each place of a training, is recognised."""

import functools
import json
import subprocess
import sys

import pytest

from conftest import BACKENDS, SCRIPTS

PLACES = ("forward", "optimizer", "validation")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel must hold a limit")


@functools.cache
def run(backend):
    return subprocess.run(
        [sys.executable, str(SCRIPTS / "exhaust.py"), backend, *PLACES],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_allocation_that_fails_is_recognised(backend, where):
    done = run(backend)

    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[PLACES.index(where)])
    assert told["is_out_of_memory"], told
