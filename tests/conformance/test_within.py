"""Tests that need a framework in their own process: tests/within, once for each backend."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import BACKENDS, QUIET

WITHIN = sorted((Path(__file__).parents[1] / "within").glob("*_test.py"))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("path", WITHIN, ids=lambda path: path.stem)
def test_within(path, backend):
    done = subprocess.run(
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
        timeout=600,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-6000:]
