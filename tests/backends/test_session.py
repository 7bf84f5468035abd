"""Many models in a loop: what a session releases, keeps and names; a process of its own."""

import functools
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from conftest import BACKENDS, SCRIPTS, SOON_COMPILED, environment_of

FEW = 12
CHECKS = """
import gc, warnings, weakref
import keras, numpy as np, memfit

gc.collect()
gc.freeze()  # the million objects of a framework, for quick collections
x = np.ones((64, 4), "float32")

def build():
    layers = [keras.layers.Dense(4), keras.layers.Dropout(0.5), keras.layers.Dense(1)]
    model = keras.Sequential(layers)
    model.compile(optimizer="adam", loss="mse")
    return model

def train(model):
    return model.fit(x, x[:, :1], epochs=1, verbose=0).history["loss"][-1]

outer = build()
before = train(outer)
keras.utils.set_random_seed(7)
keras.config.set_dtype_policy("mixed_bfloat16")
with memfit.session():
    inner = build()
    train(inner)
    gone = weakref.ref(inner)
assert keras.config.dtype_policy().name == "mixed_bfloat16"
assert keras.layers.Dense(1).dtype_policy.name == "mixed_bfloat16"
keras.config.set_dtype_policy("float32")
train(outer)  # what was there before goes on
train(inner)  # and so does what a name still holds
inner.predict(x, verbose=0)
del inner

with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    with memfit.session():
        train(build())
    gc.collect()
    assert gone() is None
    assert not [one for one in told if issubclass(one.category, memfit.SurvivorWarning)]

kept = []
with memfit.session():
    kept.append(build())
    train(kept[0])
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    with memfit.session():
        pass
messages = [str(one.message) for one in told if issubclass(one.category, memfit.SurvivorWarning)]
assert len(messages) == 1, messages
assert "1 model built inside earlier sessions" in messages[0]
assert "kept[0] (global of script.py)" in messages[0], messages[0]
kept.clear()

try:
    with memfit.session():
        failed = weakref.ref(build())
        raise ValueError("in the middle")
except ValueError:
    pass
with memfit.session():
    with memfit.session():
        train(build())
gc.collect()
assert failed() is None
print("good")
"""
ISOLATED = """
import logging, os, pickle, signal
import memfit

def add(a, *, b):
    return a + b, os.getpid()

def fail():
    raise KeyError("column")

def end():
    os.kill(os.getpid(), signal.SIGKILL)

def give_function():
    return lambda: 1

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    total, pid = memfit.isolated(add, 1, b=2)
    assert total == 3 and pid != os.getpid()
    try:
        memfit.isolated(fail)
    except KeyError as error:
        assert error.args == ("column",)
        assert 'raise KeyError("column")' in error.__notes__[0]
    for function, words in ((end, "SIGKILL"), (give_function, "cannot be pickled")):
        try:
            memfit.isolated(function)
        except memfit.IsolatedError as error:
            assert words in str(error), error
        else:
            raise AssertionError(function)
    print("good")
"""


@functools.cache
def check_and_fold(backend, number):
    """Runs the checks and then so many folds, in one process."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "script.py")
        script.write_text(CHECKS + (SCRIPTS / "folds.py").read_text())
        return run(script, backend, number, "session")


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_session_releases_what_was_built_inside_and_touches_nothing_else(backend):
    done = check_and_fold(backend, FEW)

    assert "good\n" in done.stdout, done.stderr[-3000:]


@pytest.mark.parametrize("backend", BACKENDS)
def test_folds_inside_sessions_do_not_add_up(backend):
    # malloc's ups and downs are some MB; over more folds they weigh little.
    assert fold(backend, FEW) < 0.3 or fold(backend, 5 * FEW) < 0.3


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
def test_many_folds_inside_sessions_do_not_add_up(backend):
    assert fold(backend, 5 * FEW) < 0.3


def fold(backend, number):
    """Returns by how many MB each of so many folds adds to the memory."""
    done = check_and_fold(backend, number)
    assert done.returncode == 0, done.stderr[-3000:]
    return float(done.stdout.split()[-1])


def test_a_process_of_its_own_returns_its_result_or_its_error_and_says_its_peak(memfit):
    done = run(memfit.script(ISOLATED), "torch")

    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith("good\n")
    assert "add ran in its own process: peak" in done.stderr


def run(script, backend, *arguments):
    return subprocess.run(
        [sys.executable, str(script), *map(str, arguments)],
        env={**environment_of(backend), **SOON_COMPILED},
        capture_output=True,
        text=True,
        check=False,
    )
