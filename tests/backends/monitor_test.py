"""`memfit.MemoryMonitor` by hand disturbs nothing.

Run by tests/backends/test_each_backend.py, once for each backend.
"""

import gc
import threading
import weakref

import keras
import numpy as np
import pytest
from keras.src.callbacks.callback_list import CallbackList

import memfit
from memfit.diagnose.diagnosis import diagnose
from memfit.record.read_run import read_run

BACKEND = keras.backend.backend()
X = np.ones((8, 2), "float32")
Y = X[:, :1]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def build():
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


def test_one_monitor_serves_several_calls_and_leaves_no_thread(tmp_path, capsys):
    model = build()
    monitor = memfit.MemoryMonitor(out="recorded")
    log = keras.callbacks.CSVLogger("log.csv")

    for _ in range(2):
        history = model.fit(X, Y, epochs=2, verbose=0, callbacks=[monitor, log])
    model.evaluate(X, Y, verbose=0, callbacks=[monitor])

    assert sorted(history.history) == ["loss", "memory_mb", "memory_peak_mb"]
    assert history.history["memory_mb"][0] > 10
    assert monitor.run.name == "recorded"
    assert [one.name for one in threading.enumerate() if one.name == "memfit"] == []
    assert capsys.readouterr().err.count("memfit: memory recorded in recorded") == 1
    phases = diagnose(read_run(tmp_path / "recorded")).phases
    assert [phase.name for phase in phases] == [*("fit", "epoch", "epoch") * 2, "evaluate"]
    header = (tmp_path / "log.csv").read_text().splitlines()[0]
    assert header.startswith("epoch,loss,memory_mb,memory_peak_mb")


def test_a_monitor_that_cannot_write_lets_training_go_on(tmp_path, capsys):
    (tmp_path / "taken").touch()
    model = build()

    for _ in range(2):
        model.fit(X, Y, verbose=0, callbacks=[memfit.MemoryMonitor(out="taken/run")])

    assert "memfit: cannot write a recording to taken/run" in capsys.readouterr().err


@pytest.mark.skipif(BACKEND == "tensorflow", reason="Keras dispatches nothing by itself there")
def test_a_monitor_neither_ends_asynchronous_dispatch_nor_syncs_the_state(monkeypatch):
    model, syncs = build(), []
    original = getattr(type(model), "jax_state_sync", None)
    if original is not None:

        def counted(self):
            syncs.append(1)
            return original(self)

        monkeypatch.setattr(type(model), "jax_state_sync", counted)

    def train(callbacks):
        syncs.clear()
        x = np.ones((640, 2), "float32")
        model.fit(x, x[:, :1], batch_size=4, epochs=2, verbose=0, callbacks=callbacks)
        return len(syncs)

    monitor = memfit.MemoryMonitor()
    together = CallbackList([monitor], model=model)

    assert together._async_train
    assert together._async_test
    assert together._async_predict
    train([])
    assert train([monitor]) == train([])


def test_a_monitor_does_not_keep_the_model_alive():
    monitor = memfit.MemoryMonitor()
    model = build()
    model.fit(X, Y, verbose=0, callbacks=[monitor])
    gone = weakref.ref(model)

    del model
    keras.utils.clear_session()
    gc.collect()

    assert gone() is None
