"""Backends take seconds to load, so packages of their names stand in for them."""

import json
import os
import subprocess
import sys

import pytest

ASK = """
import json, msgspec
from memfit.measure.machine import read_machine
print(json.dumps(msgspec.to_builtins(read_machine())))
"""


@pytest.fixture
def read_with(tmp_path):
    """Returns a function that reads this machine with packages of the given source."""

    def read(**packages):
        for name in ("tensorflow", "jax", "torch"):
            folder = tmp_path / name
            folder.mkdir()
            (folder / "__init__.py").write_text(packages.get(name, ""))
        answer = subprocess.run(
            [sys.executable, "-c", ASK],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
                "MALLOC_ARENA_MAX": "2",
            },
            capture_output=True,
            check=True,
        ).stdout
        return json.loads(answer)

    return read


def test_a_backend_that_fails_or_crashes_does_not_hide_the_others(read_with):
    machine = read_with(
        tensorflow="raise ImportError('libcudart.so.12: cannot open shared object file')",
        jax="import os; os.abort()",
        torch="class cuda: device_count = staticmethod(lambda: 2)",
    )

    assert machine["devices"] == {
        "tensorflow": None,
        "jax": None,
        "torch": ["CPU:0", "GPU:0", "GPU:1"],
    }


def test_the_machine_is_read_with_its_limits_and_settings(read_with):
    machine = read_with()

    assert machine["limits"][0]["limit_bytes"] > 0
    assert machine["available_bytes"] > 0
    assert machine["settings"]["MALLOC_ARENA_MAX"] == "2"
