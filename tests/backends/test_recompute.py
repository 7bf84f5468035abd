"""Recomputation changes the memory and nothing else, on every backend."""

import subprocess
import sys

import pytest

from conftest import BACKENDS, COMPILES, SCRIPTS, SOON_COMPILED, compiled_once, environment_of

# Where a model is compiled, which takes most of the time.
COMPILING = ("tensorflow", "jax")
# What malloc frees goes back at once, so that the peak is what was in use together.
GIVEN_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536"}


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_recomputed_model_learns_the_same(backend, tmp_path):
    """The checks and what they compare are in `tests/scripts/recomputed.py`."""
    assert_good(run(backend, **SOON_COMPILED, **compiled_once(tmp_path)))


@pytest.mark.parametrize(
    "backend", ["torch", *(pytest.param(one, marks=pytest.mark.long) for one in COMPILING)]
)
def test_it_learns_the_same_in_half_precision_and_under_xla(backend):
    assert_good(run(backend, "more"))


@pytest.mark.long
def test_every_model_learns_the_same_compiled_by_tensorflow():
    assert_good(run("tensorflow", **{COMPILES: "1"}))


def assert_good(done):
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith("good\n")


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_peak_of_a_recomputed_model_is_lower(backend):
    ways = [run(backend, "peak", way, **GIVEN_BACK) for way in ("kept", "recomputed")]

    kept_bytes, recomputed_bytes = (int(done.stdout.split()[-1]) for done in ways)
    assert recomputed_bytes < 0.5 * kept_bytes


def run(backend, *arguments, **environment):
    return subprocess.run(
        [sys.executable, str(SCRIPTS / "recomputed.py"), *arguments],
        env={**environment_of(backend), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
