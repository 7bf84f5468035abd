from dataclasses import replace

import pytest

from memfit.diagnose.machine_advice import advise
from memfit.measure.limits import Limit
from memfit.measure.machine import Machine
from memfit.measure.nvidia import NvidiaMemory
from memfit.measure.pressure import Pressure

GB = 10**9
A100 = NvidiaMemory("NVIDIA A100", 1 * GB, 40 * GB)
HEALTHY = Machine(
    platform="Linux-6.1-x86_64",
    python="3.11.7",
    limits=(Limit(64 * GB, "machine"),),
    available_bytes=60 * GB,
    swap_bytes=8 * GB,
    shared_memory_bytes=32 * GB,
    overcommit=0,
    malloc="glibc 2.36",
    pressure=Pressure(0.0, 0.0),
    versions={"keras": "3.15.1", "torch": "2.13.0"},
    devices={"torch": ("CPU:0",)},
    settings={"KERAS_BACKEND": "torch"},
)
TENSORFLOW_ON_GPU = {
    "versions": {"tensorflow": "2.21.0"},
    "devices": {"tensorflow": ("CPU:0", "GPU:0")},
    "nvidia": (A100,),
}
JAX_ON_GPU = {
    "versions": {"jax": "0.10.2"},
    "devices": {"jax": ("CUDA:0",)},
    "nvidia": (A100,),
}


def codes(**changes):
    return [advice.code for advice in advise(replace(HEALTHY, **changes))]


def test_a_healthy_machine_needs_no_advice():
    assert advise(HEALTHY) == ()


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("container-limit", {"limits": (Limit(8 * GB, "cgroup v2"), Limit(64 * GB, "machine"))}),
        ("container-limit", {"limits": (Limit(8 * GB, "cgroup v1"), Limit(64 * GB, "machine"))}),
        ("resource-limit", {"limits": (Limit(8 * GB, "rlimit as"), Limit(64 * GB, "machine"))}),
        ("resource-limit", {"limits": (Limit(8 * GB, "rlimit data"), Limit(64 * GB, "machine"))}),
        ("little-available", {"available_bytes": 6 * GB}),
        ("pressure", {"pressure": Pressure(10.0, 0.0)}),
        ("no-swap", {"swap_bytes": 0}),
        ("group-kill", {"kills_whole_group": True}),
        ("small-shared-memory", {"shared_memory_bytes": 64 * 10**6}),
        ("no-overcommit", {"overcommit": 2}),
        ("malloc-arenas", {"settings": {"MALLOC_ARENA_MAX": "2"}}),
        ("backend-missing", {"settings": {"KERAS_BACKEND": "jax"}}),
        ("backend-broken", {"devices": {"torch": None}}),
        ("device-unseen", {"nvidia": (A100,)}),
        ("tensorflow-takes-all", {**TENSORFLOW_ON_GPU, "settings": {}}),
        ("jax-takes-most", {**JAX_ON_GPU, "settings": {}}),
    ],
)
def test_one_thing_out_of_order_gives_that_advice_and_no_other(code, changes):
    assert codes(**changes) == [code]


@pytest.mark.parametrize(
    "changes",
    [
        {"limits": (Limit(64 * GB, "machine"), Limit(128 * GB, "cgroup v2"))},
        {"limits": (Limit(64 * GB, "machine"), Limit(128 * GB, "rlimit as"))},
        {"available_bytes": 64 * GB // 10 + 1},
        {"pressure": Pressure(9.9, 0.0)},
        {"pressure": None},
        {"shared_memory_bytes": GB},
        {"shared_memory_bytes": None},
        {"overcommit": 1},
        {"overcommit": None},
        {"devices": {"torch": ("CPU:0", "GPU:0")}, "nvidia": (A100,)},
        {**TENSORFLOW_ON_GPU, "settings": {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}},
        {**JAX_ON_GPU, "settings": {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}},
        {"devices": {}, "versions": {}, "settings": {}},
        {"settings": {"KERAS_BACKEND": ""}},  # Keras takes that for not set
        {"settings": {"KERAS_BACKEND": "numpy"}},
    ],
)
def test_what_is_in_order_or_unknown_or_just_enough_gives_no_advice(changes):
    assert codes(**changes) == []


def test_a_backend_that_another_distribution_brought_is_not_missing():
    changes = {
        "versions": {"keras": "3.15.1"},
        "devices": {"tensorflow": ("CPU:0",)},
        "settings": {"KERAS_BACKEND": "tensorflow"},
    }

    assert codes(**changes) == []


def test_a_missing_backend_is_reported_with_those_there_are():
    (advice,) = advise(replace(HEALTHY, settings={"KERAS_BACKEND": "jax"}))

    assert advice.message == "KERAS_BACKEND=jax, which is not installed here."
    assert advice.action == "Install it, or choose another: torch"


@pytest.mark.parametrize(
    ("changes", "figure"),
    [
        ({"available_bytes": 6 * GB}, "6.00 GB"),
        ({"shared_memory_bytes": 64 * 10**6}, "64.0 MB"),
        ({"limits": (Limit(8 * GB, "cgroup v2"),), "available_bytes": 8 * GB}, "8.00 GB"),
        ({"limits": (Limit(8 * GB, "rlimit as"),), "available_bytes": 8 * GB}, "8.00 GB"),
        ({"pressure": Pressure(12.4, 0.0)}, "12%"),
        ({"nvidia": (A100,)}, "NVIDIA A100"),
        ({"settings": {"MALLOC_ARENA_MAX": "2"}}, "MALLOC_ARENA_MAX=2"),
    ],
)
def test_advice_reports_the_figure_it_rests_on(changes, figure):
    (advice,) = advise(replace(HEALTHY, **changes))

    assert figure in advice.message


def test_risks_come_before_what_is_good_to_know():
    advice = advise(
        replace(HEALTHY, swap_bytes=0, overcommit=2, settings={"MALLOC_ARENA_MAX": "2"})
    )

    assert [one.is_risk for one in advice] == [True, False, False]
