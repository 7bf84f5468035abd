import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from memfit.backends import active_backend_name

WITH_MODULES = """
import json, sys, types
for name in sys.argv[1:]:
    name, _, version = name.partition("=")
    sys.modules[name] = types.ModuleType(name)
    if version:
        sys.modules[name].__version__ = version
from memfit.agent.process_counts import read_software
software = read_software()
print(json.dumps([software.backend, software.versions]))
"""


def keras_with(backend):
    return SimpleNamespace(config=SimpleNamespace(backend=lambda: backend))


def read_in_process_with(*modules):
    told = subprocess.run(
        [sys.executable, "-c", WITH_MODULES, *modules], capture_output=True, check=True
    )
    return json.loads(told.stdout)


def test_what_is_loaded_is_reported_with_its_version_and_nothing_is_loaded_for_it():
    loaded = {"keras": "3.15.1", "jax": "0.10.2", "jaxlib": "0.10.1", "numpy": "2.4.6"}

    backend, versions = read_in_process_with(
        *(f"{name}={version}" for name, version in loaded.items()), "scipy=1.17"
    )

    assert backend == "jax"
    assert versions == loaded


def test_a_package_that_is_still_being_imported_has_no_version_yet():
    _, versions = read_in_process_with("keras", "jax=0.10.2")

    assert versions == {"jax": "0.10.2"}


@pytest.mark.parametrize("name", ["tensorflow", "jax", "torch"])
def test_the_backend_of_keras_counts_whatever_else_is_loaded(name):
    modules = {"tensorflow": ..., "jax": ..., "torch": ..., "keras": keras_with(name)}

    assert active_backend_name(modules) == name


@pytest.mark.parametrize("name", ["numpy", "openvino"])
def test_a_backend_that_memfit_does_not_know_is_none(name):
    modules = {"tensorflow": ..., "keras": keras_with(name)}

    assert active_backend_name(modules) is None


@pytest.mark.parametrize("keras", [None, SimpleNamespace()], ids=["not loaded", "half loaded"])
def test_without_keras_what_is_loaded_counts(keras):
    modules = {"torch": ...} | ({"keras": keras} if keras else {})

    assert active_backend_name(modules) == "torch"


def test_without_any_framework_there_is_no_backend():
    assert active_backend_name({"numpy": ...}) is None
