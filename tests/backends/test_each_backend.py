"""Tests that need a framework in their own process: *_test.py here, once for each backend."""

import os
import subprocess
import sys
from concurrent.futures import wait
from pathlib import Path

import pytest

from conftest import BACKENDS, QUIET, two_at_a_time

WITHIN = sorted(Path(__file__).parent.glob("*_test.py"))
MEASURES = "fit_test"


def run(path, backend):
    return subprocess.run(
        # Frameworks give warnings of their own.
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-W",
            "default",
            "-p",
            "no:cacheprovider",
            str(path),
        ],
        env={**os.environ, **QUIET, "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.fixture(scope="module")
def begun():
    with two_at_a_time(run, WITHIN, BACKENDS) as all_of_them:
        yield all_of_them


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("path", WITHIN, ids=lambda path: path.stem)
def test_within(path, backend, begun):
    done = begun[path, backend].result()
    if done.returncode != 0 and path.stem == MEASURES:
        wait(begun.values())
        done = run(path, backend)  # what a busy machine measured is measured once more, alone

    assert done.returncode == 0, done.stdout[-6000:]
