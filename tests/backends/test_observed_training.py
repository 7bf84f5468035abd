"""One suite over every backend: a real training on each, seen by memfit the same way."""

import functools
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from conftest import BACKENDS, SCRIPTS, Memfit, environment_of
from memfit.diagnose.diagnosis import diagnose
from memfit.record.read_run import read_run


def phases_named(ran, name):
    return [phase for phase in ran.result["phases"] if phase["name"] == name]


def test_the_backend_and_the_versions_are_named(tour):
    backend, ran = tour

    assert ran.result["backend"] == backend
    assert {"keras", "python", "memfit", backend} <= set(ran.result["versions"])


def test_growth_is_found_with_its_rate(tour):
    _, ran = tour

    assert ran.result["verdict"] == "growing"
    assert ran.result["growth"]["bytes_per_epoch"] == pytest.approx(15_000_000, rel=0.1)
    assert ran.result["growth"]["bytes_per_step"] == pytest.approx(1_500_000, rel=0.1)


def test_every_epoch_is_marked_once(tour):
    _, ran = tour

    assert [phase["number"] for phase in phases_named(ran, "epoch")] == list(range(1, 11))


def test_validation_inside_fit_is_told_from_evaluate(tour):
    _, ran = tour

    assert len(phases_named(ran, "validation")) == 10
    assert sum(phase["calls"] for phase in phases_named(ran, "evaluate")) == 1


def test_calls_in_a_row_are_counted(tour):
    _, ran = tour

    assert sum(phase["calls"] for phase in phases_named(ran, "predict")) == 3
    assert sum(phase["calls"] for phase in phases_named(ran, "train_on_batch")) == 30


def test_steps_of_fit_and_train_on_batch_are_counted(tour):
    _, ran = tour

    assert ran.recording.inside[-1].progress.total_steps == 10 * 10 + 30


def test_every_phase_ends(tour):
    _, ran = tour

    assert all(phase["finished"] for phase in ran.result["phases"])


def test_memory_figures_are_in_the_history(tour):
    _, ran = tour

    assert "history ['loss', 'val_loss']" in ran.stdout


def test_nothing_went_wrong_inside_memfit(tour):
    _, ran = tour

    assert ran.recording.troubles == ()
    assert ran.result["notes"] == []


def test_the_time_spent_inside_the_training_is_recorded(tour):
    _, ran = tour

    overhead = ran.result["overhead"]

    assert 0 < overhead["probe_s"] < overhead["wall_s"]


def test_malloc_is_read_from_inside_on_linux(tour):
    _, ran = tour

    readings = [sample.allocator for sample in ran.recording.inside if sample.allocator]

    assert len(readings) >= 3
    assert all(reading.in_use_bytes > 0 for reading in readings)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_loop_without_fit_is_followed_over_time_and_steps(backend, memfit):
    ran = memfit.run(SCRIPTS / "custom_loop.py", 6, "keep", backend=backend)

    assert ran.result["verdict"] == "growing"
    assert ran.result["growth"]["bytes_per_epoch"] is None
    assert ran.result["growth"]["bytes_per_step"] >= 256 * 256 * 4 * 0.9


# A process for each backend: first nothing is initialised, then calls are counted, then Keras
# is loaded.
DEVICES = """
import json, sys
import keras
from memfit.backends import active_backend_name, load
name = active_backend_name()
backend = load("devices", name)
assert name == keras.backend.backend()
print(json.dumps({"before": len(backend.read_devices())}))
keras.ops.matmul(keras.ops.ones((600, 600)), keras.ops.ones((600, 600)))
for device in backend.read_devices():
    assert device.in_use_bytes >= 0 and device.on_host, device
print(json.dumps({"listed": backend.list_devices()}))
"""


UNTOUCHED = {
    "tensorflow": """
import tensorflow as tf
from memfit.backends.devices import tensorflow as adapter
assert adapter.read_devices() == ()
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)  # fails once the runtime is up
assert len(tf.config.list_logical_devices()) == 2
""",
    "jax": """
import jax
from memfit.backends.devices import jax as adapter
assert adapter.read_devices() == ()
jax.config.update("jax_num_cpu_devices", 2)  # fails once a backend is up
assert len(jax.devices()) == 2
assert adapter.read_devices() == ()  # the CPU keeps no count
""",
    "torch": """
import torch
from memfit.backends.devices import torch as adapter
assert adapter.read_devices() == ()
assert not torch.cuda.is_initialized()
""",
}


COUNTED = {
    "tensorflow": """
import tensorflow as tf
@tf.function
def double(x):
    return x * 2
""",
    "jax": """
import jax
import jax.numpy as jnp
class tf: constant = staticmethod(jnp.asarray)
@jax.jit
def double(x):
    return x * 2
""",
    "torch": """
import torch
class tf: constant = staticmethod(torch.tensor)
weight = torch.nn.Parameter(torch.ones(1))
optimizer = torch.optim.SGD([weight], 0.1)
def double(x):
    (weight * x).sum().backward()
    optimizer.step()
    return x * 2
""",
}


CALLED = """
for _ in range(25): result = double(tf.constant(2.0))
assert float(result) == 4.0
print("called", flush=True)
"""


@functools.cache
def use_devices(backend):
    memfit = Memfit(Path(tempfile.mkdtemp()))
    parts = (UNTOUCHED[backend], 'print("untouched", flush=True)', COUNTED[backend], CALLED)
    return memfit.run(memfit.script("\n".join([*parts, DEVICES])), backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_reading_devices_initialises_nothing(backend):
    ran = use_devices(backend)

    assert "untouched\n" in ran.stdout, ran.stderr


@pytest.mark.parametrize("backend", BACKENDS)
def test_calls_without_keras_are_counted(backend):
    ran = use_devices(backend)

    assert "called\n" in ran.stdout, ran.stderr
    assert ran.recording.inside[-1].progress.calls == 25


@pytest.mark.parametrize("backend", BACKENDS)
def test_devices_are_read_and_listed_without_a_gpu(backend):
    ran = use_devices(backend)

    assert ran.code == 0, ran.stderr
    assert '"CPU:0"' in ran.stdout


def test_the_cause_the_line_and_the_holder_are_named(tour):
    _, ran = tour

    (finding,) = ran.result["findings"]

    assert finding["code"] == "held-tensors"
    assert finding["evidence"]["holder"] == "kept (global of tour.py)"
    assert finding["file"].endswith("tour.py")
    text = (SCRIPTS / "tour.py").read_text().splitlines()[finding["line"] - 1]
    assert "kept.append" in text


RETRACED = {
    "tensorflow": """
import tensorflow as tf
one = tf.ones((64, 64))
@tf.function
def step(x, scale):
    for _ in range(60): x = tf.tanh(x @ one) * scale
    return x
""",
    "jax": """
import functools, jax, jax.numpy as jnp
one = jnp.ones((64, 64))
@functools.partial(jax.jit, static_argnums=1)
def step(x, scale):
    for _ in range(60): x = jnp.tanh(x @ one) * scale
    return x
""",
}


CALLS = """
import time
until = time.monotonic() + 12
scale = 0.0
while time.monotonic() < until:
    scale += 1.0
    step(one, scale)
"""


@pytest.mark.parametrize("backend", RETRACED)
def test_a_function_that_is_traced_at_every_call_is_named_with_its_line(backend, memfit):
    ran = memfit.run(memfit.script(RETRACED[backend] + CALLS), backend=backend)

    assert ran.result["verdict"] == "growing"
    (finding,) = ran.result["findings"]
    assert (finding["code"], finding["file"], finding["line"]) == ("retracing", "script.py", 14)
    assert "scale: " in finding["message"]


BY_HAND = """
import os, sys
sys.argv = ["tour.py", "15000000", "10"]
import keras, memfit
fit = keras.Model.fit
monitor = memfit.MemoryMonitor(out="by-hand")
def fit_with_monitor(self, *args, callbacks, **kwargs):
    return fit(self, *args, callbacks=[monitor, *callbacks], **kwargs)
keras.Model.fit = fit_with_monitor
exec(open(os.environ["TOUR"]).read())
"""


def test_a_monitor_by_hand_records_what_memfit_run_records(tour, memfit):
    backend, watched = tour
    environment = {**environment_of(backend), "TOUR": str(SCRIPTS / "tour.py")}
    done = subprocess.run(
        [sys.executable, memfit.script(BY_HAND)],
        cwd=memfit.cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    by_hand = read_run(memfit.cwd / "by-hand")
    in_fit = ("fit", "epoch", "validation")
    told, told_by_run = (
        [(mark.event, mark.phase, mark.number) for mark in one.marks if mark.phase in in_fit]
        for one in (by_hand, watched.recording)
    )
    assert done.returncode == 0, done.stderr
    assert told == told_by_run
    figures = "'memory_mb', 'memory_peak_mb', "  # in the logs by hand, not under memfit run
    assert done.stdout.replace(figures, "") == watched.stdout
    assert figures in done.stdout
    assert diagnose(by_hand).verdict == watched.result["verdict"] == "growing"
    assert diagnose(by_hand).growth.bytes_per_epoch == pytest.approx(15_000_000, rel=0.1)
