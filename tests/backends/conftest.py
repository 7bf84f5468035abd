"""What `make test` runs of the conformance suites on TensorFlow and JAX.

All of it runs on torch, which neither traces nor compiles. On the other two a quarter does, not the
same one; the rest is `long`, so that `make test-long` runs every case on every backend.
"""

import os
from collections import Counter

import pytest

EVERY = 4
# Which of every four, by backend.
FIRST = {"tensorflow": 0, "jax": 2}
THINNED = {
    "averaged_losses_test.py",
    "batchnorm_exact_test.py",
    "first_step_test.py",
    "fit_unchanged_test.py",
    "guard_test.py",
    "levers_proof_test.py",
    "micro_batches_test.py",
    "proof_test.py",
}


def pytest_collection_modifyitems(items):
    first = FIRST.get(os.environ["KERAS_BACKEND"])
    seen = Counter()
    for item in items:
        name = item.path.name
        if first is None or name not in THINNED or item.get_closest_marker("long"):
            continue
        if seen[name] % EVERY != first:
            item.add_marker(pytest.mark.long)
        seen[name] += 1
