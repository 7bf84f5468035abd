"""Tests that need a framework in their own process: *_test.py here, a process for each backend."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import BACKENDS, COMPILES, QUIET, SOON_COMPILED, compiled_once

ALL = sorted(Path(__file__).parent.glob("*_test.py"))
# What compiled programs take is what is tested.
MEASURING = [path for path in ALL if path.stem in ("fit_test", "xla_order_test")]
OTHERS = [path for path in ALL if path not in MEASURING]


def run(backend, paths, chosen="not long", timeout_s=900, **environment):
    return subprocess.run(
        # Frameworks give warnings of their own.
        [
            *(sys.executable, "-m", "pytest", "-q", "-W", "default", "-p", "no:cacheprovider"),
            *("--durations=8", "-m", chosen, *map(str, paths)),
        ],
        env={**os.environ, **QUIET, "KERAS_BACKEND": backend, **environment},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_measures_nothing_passes_in_one_process(backend, tmp_path):
    done = run(backend, OTHERS, **SOON_COMPILED, **compiled_once(tmp_path))

    assert done.returncode == 0, done.stdout[-6000:]


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_measures_passes(backend):
    done = run(backend, MEASURING)
    if done.returncode != 0:
        done = run(backend, MEASURING)  # on a busy machine a process may take more for a moment

    assert done.returncode == 0, done.stdout[-6000:]


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_repeats_the_others_passes(backend):
    done = run(backend, ALL, "long", timeout_s=7200)

    assert done.returncode == 0, done.stdout[-6000:]


@pytest.mark.long
def test_what_runs_eagerly_passes_compiled():
    done = run("tensorflow", OTHERS, **{COMPILES: "1"})

    assert done.returncode == 0, done.stdout[-6000:]
