"""`memfit.MemoryMonitor` by hand disturbs nothing."""

import subprocess
import sys

import pytest

from conftest import QUIET
from memfit.diagnose.diagnosis import diagnose
from memfit.record.read_run import read_run


def python(memfit, text, backend, **more):
    import os

    environment = {**os.environ, **QUIET, "KERAS_BACKEND": backend, **more}
    return subprocess.run(
        [sys.executable, memfit.script(text)],
        cwd=memfit.cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


TWO_FITS = """
import threading
import numpy as np, keras, memfit
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
x = np.ones((8, 2), "float32")
monitor = memfit.MemoryMonitor(out="recorded")
log = keras.callbacks.CSVLogger("log.csv")
for _ in range(2):
    history = model.fit(x, x[:, :1], epochs=2, verbose=0, callbacks=[monitor, log])
model.evaluate(x, x[:, :1], verbose=0, callbacks=[monitor])
print(sorted(history.history))
print([thread.name for thread in threading.enumerate() if thread.name == "memfit"])
assert history.history["memory_mb"][0] > 10
assert monitor.run.name == "recorded"
"""


def test_one_monitor_serves_several_calls_and_leaves_no_thread(memfit):
    done = python(memfit, TWO_FITS, "jax")

    assert done.returncode == 0, done.stderr
    assert done.stdout == "['loss', 'memory_mb', 'memory_peak_mb']\n[]\n"
    assert done.stderr.count("memfit: memory recorded in recorded") == 1
    phases = diagnose(read_run(memfit.cwd / "recorded")).phases
    assert [phase.name for phase in phases] == [*("fit", "epoch", "epoch") * 2, "evaluate"]


def test_a_csv_log_shows_the_figures(memfit):
    python(memfit, TWO_FITS, "jax")

    header = (memfit.cwd / "log.csv").read_text().splitlines()[0]

    assert header.startswith("epoch,loss,memory_mb,memory_peak_mb")


NOT_WRITABLE = """
import numpy as np, keras, memfit
open("taken", "w").close()
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
x = np.ones((8, 2), "float32")
for _ in range(2):
    model.fit(x, x[:, :1], verbose=0, callbacks=[memfit.MemoryMonitor(out="taken/run")])
print("trained")
"""


def test_a_monitor_that_cannot_write_lets_training_go_on(memfit):
    done = python(memfit, NOT_WRITABLE, "jax")

    assert done.stdout == "trained\n"
    assert "memfit: cannot write a recording to taken/run" in done.stderr


ASYNCHRONOUS = """
import numpy as np, keras, memfit
from keras.src.callbacks.callback_list import CallbackList
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
syncs = 0
original = getattr(type(model), "jax_state_sync", None)
if original is not None:
    def counted(self):
        global syncs
        syncs += 1
        return original(self)
    type(model).jax_state_sync = counted
def train(callbacks):
    global syncs
    syncs = 0
    x = np.ones((640, 2), "float32")
    model.fit(x, x[:, :1], batch_size=4, epochs=2, verbose=0, callbacks=callbacks)
    return syncs
monitor = memfit.MemoryMonitor()
together = CallbackList([monitor], model=model)
print(together._async_train, together._async_test, together._async_predict)
train([])
print(train([monitor]) == train([]))
"""


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_a_monitor_neither_ends_asynchronous_dispatch_nor_syncs_the_state(backend, memfit):
    done = python(memfit, ASYNCHRONOUS, backend)

    assert done.stdout == "True True True\nTrue\n", done.stderr


LETS_GO = """
import gc, weakref
import numpy as np, keras, memfit
monitor = memfit.MemoryMonitor()
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
x = np.ones((8, 2), "float32")
model.fit(x, x[:, :1], verbose=0, callbacks=[monitor])
gone = weakref.ref(model)
del model
keras.utils.clear_session()
gc.collect()
print(gone() is None)
"""


def test_a_monitor_does_not_keep_the_model_alive(memfit):
    assert python(memfit, LETS_GO, "torch").stdout == "True\n"
