"""Tests that need a framework in their own process: *_test.py here, a process for each backend."""

import os
import subprocess
import sys
from concurrent.futures import wait
from pathlib import Path

import pytest

from conftest import BACKENDS, QUIET, two_at_a_time

ALL = sorted(Path(__file__).parent.glob("*_test.py"))
MEASURING = [path for path in ALL if path.stem == "fit_test"]


def run(backend, paths, chosen="not long"):
    return subprocess.run(
        # Frameworks give warnings of their own.
        [
            *(sys.executable, "-m", "pytest", "-q", "-W", "default", "-p", "no:cacheprovider"),
            *("-m", chosen, *map(str, paths)),
        ],
        env={**os.environ, **QUIET, "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_measures_nothing_passes_in_one_process(backend):
    done = run(backend, [path for path in ALL if path not in MEASURING])

    assert done.returncode == 0, done.stdout[-6000:]


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_repeats_the_others_passes(backend):
    done = run(backend, ALL, "long")

    assert done.returncode == 0, done.stdout[-6000:]


@pytest.fixture(scope="module")
def measured():
    with two_at_a_time(lambda backend: run(backend, MEASURING), BACKENDS) as jobs:
        yield jobs


@pytest.mark.measures
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_measures_passes(backend, measured):
    done = measured[backend,].result()
    if done.returncode != 0:
        wait(measured.values())
        done = run(backend, MEASURING)  # what a busy machine measured is measured once more, alone

    assert done.returncode == 0, done.stdout[-6000:]
