"""What a new Keras has moved: every private name that memfit relies on, on every backend."""

import subprocess
import sys

import pytest

from conftest import BACKENDS, environment_of, two_at_a_time

FIND_MISSING = """
import importlib
import keras, numpy as np
from memfit.keras_private.names import private_names

class Failing(keras.layers.Layer):
    def call(self, inputs):
        raise ValueError("an error inside a layer")

def objects():
    inputs = keras.Input((3,))
    hidden = keras.layers.Dropout(0.5)(keras.layers.BatchNormalization()(inputs))
    model = keras.Model(inputs, [keras.layers.Dense(2, name=name)(hidden) for name in "ab"])
    model.compile("adam", {"a": "mse", "b": "mae"}, metrics={"a": ["mae"]})
    x, y = np.ones((4, 3), "float32"), np.ones((4, 2), "float32")
    model.train_on_batch(x, {"a": y, "b": y})
    sequential = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    nodes = [node for layer in model.layers for node in layer._inbound_nodes]
    parts = [model._compile_loss, model._compile_metrics, *model._compile_metrics.metrics]
    seeds = [keras.random.SeedGenerator(1)]
    arguments = [node.arguments for node in nodes]
    try:
        Failing()(x)
    except ValueError as error:
        parts.append(error)
    return [model, sequential, *model.layers, *nodes, *arguments, *model.outputs,
            model.optimizer, *parts, *seeds, model.trainable_variables[0]]

def is_there(path, objects):
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
            break
        except ModuleNotFoundError:
            continue
    for name in parts[end:]:
        made = [one for one in objects if isinstance(found, type) and isinstance(one, found)]
        holders = [found, *made]
        holder = next((one for one in holders if hasattr(one, name)), None)
        if holder is None:
            return False
        found = getattr(holder, name)
    return True

names = [one for one in private_names() if one.backend in (None, keras.backend.backend())]
assert len(names) > 30
assert not is_there("keras.src.models.functional.Functional._no_such_name", objects())
assert not is_there("keras.src.no_such_module", [])
samples = objects()
for one in names:
    if not is_there(one.path, samples):
        print(f"Keras {keras.__version__} has no {one.path}: used by {one.used_by}")
"""


def find_missing(backend):
    return subprocess.run(
        [sys.executable, "-c", FIND_MISSING],
        env=environment_of(backend),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture(scope="module")
def runs():
    with two_at_a_time(find_missing, BACKENDS) as jobs:
        yield jobs


@pytest.mark.parametrize("backend", BACKENDS)
def test_keras_has_every_private_name_that_memfit_relies_on(runs, backend):
    done = runs[(backend,)].result()

    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
