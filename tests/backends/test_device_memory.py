"""Accelerators through each adapter, with the smallest fake at the seam: no GPU is at hand.

The fakes answer as the documented functions do; nothing here has run on hardware.
"""

import sys
from types import SimpleNamespace

import pytest

from memfit.backends import active_backend_name, load
from memfit.backends.devices import DeviceMemory

GB = 10**9


def fake_tensorflow(modules):
    info = {"current": 2 * GB, "peak": 3 * GB}
    config = SimpleNamespace(
        list_logical_devices=lambda: [SimpleNamespace(name="/device:GPU:0")],
        experimental=SimpleNamespace(
            get_memory_info=lambda device: {"GPU:0": info}[device],
            reset_memory_stats=lambda device: info.update(peak=info["current"]),
        ),
    )
    modules["tensorflow"] = SimpleNamespace(config=config, errors=SimpleNamespace(OpError=OSError))
    context = SimpleNamespace(_initialized=True)
    modules["tensorflow.python.eager.context"] = SimpleNamespace(context_safe=lambda: context)


def fake_jax(modules):
    stats = {"bytes_in_use": 2 * GB, "peak_bytes_in_use": 3 * GB, "bytes_limit": 30 * GB}
    device = SimpleNamespace(platform="gpu", id=0, memory_stats=lambda: stats)
    modules["jax"] = SimpleNamespace(local_devices=lambda: [device])
    modules["jax._src.xla_bridge"] = SimpleNamespace(backends_are_initialized=lambda: True)
    return 30 * GB


def fake_torch(modules):
    peaks = {0: 3 * GB}
    cuda = SimpleNamespace(
        is_initialized=lambda: True,
        device_count=lambda: 1,
        memory_allocated=lambda index: 2 * GB,
        max_memory_allocated=peaks.get,
        reset_peak_memory_stats=lambda index: peaks.update({index: 2 * GB}),
        get_device_properties=lambda index: SimpleNamespace(total_memory=40 * GB),
    )
    modules["torch"] = SimpleNamespace(cuda=cuda)
    return 40 * GB


FAKES = {"tensorflow": fake_tensorflow, "jax": fake_jax, "torch": fake_torch}


def put_in_place(name, monkeypatch):
    modules = {}
    limit_bytes = FAKES[name](modules)
    for module_name, module in modules.items():
        monkeypatch.setitem(sys.modules, module_name, module)
    return limit_bytes


@pytest.mark.parametrize("name", FAKES)
def test_an_accelerator_is_read_with_use_peak_and_limit(name, monkeypatch):
    limit_bytes = put_in_place(name, monkeypatch)

    (device,) = load("devices", name).read_devices()

    assert device == DeviceMemory("GPU:0", 2 * GB, 3 * GB, limit_bytes, on_host=False)


@pytest.mark.parametrize("name", FAKES)
def test_a_peak_begins_anew_but_for_jax_which_has_no_way(name, monkeypatch):
    put_in_place(name, monkeypatch)

    is_reset = load("devices", name).reset_peaks()

    (device,) = load("devices", name).read_devices()
    assert is_reset == (name != "jax")
    assert device.peak_bytes == (2 * GB if is_reset else 3 * GB)


def test_a_peak_that_jax_does_not_know_is_none(monkeypatch):
    put_in_place("jax", monkeypatch)
    (device,) = sys.modules["jax"].local_devices()
    device.memory_stats()["peak_bytes_in_use"] = -1

    assert load("devices", "jax").read_devices()[0].peak_bytes is None


@pytest.mark.parametrize("name", FAKES)
def test_a_framework_that_is_not_loaded_has_no_devices(name, monkeypatch):
    monkeypatch.delitem(sys.modules, name, raising=False)

    assert load("devices", name).read_devices() == ()


def test_keras_decides_which_backend_is_active():
    keras = SimpleNamespace(config=SimpleNamespace(backend=lambda: "torch"))

    assert active_backend_name({"tensorflow": None, "torch": None, "keras": keras}) == "torch"


def test_without_keras_the_framework_that_is_loaded_is_active():
    assert active_backend_name({"jax": None}) == "jax"
    assert active_backend_name({}) is None


def test_a_backend_that_memfit_does_not_know_is_left_alone():
    keras = SimpleNamespace(config=SimpleNamespace(backend=lambda: "openvino"))

    assert active_backend_name({"keras": keras}) is None
