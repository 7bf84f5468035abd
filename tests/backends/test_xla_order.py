"""What is particular to JAX: XLA orders the work as it likes, and compiles each size."""

import os
import subprocess
import sys

from conftest import QUIET

BUILD = """
import jax, keras, numpy as np
from memfit.fitting.levers.micro_batches import install, make_micro_batches, split
from memfit.backends import load

def build():
    x = inputs = keras.Input((64,))
    for _ in range(6):
        x = keras.layers.Dense(256, activation="gelu")(x)
    model = keras.Model(inputs, keras.layers.Dense(1)(x))
    model.compile("sgd", "mse")
    return model

x, y = np.zeros((1000, 64), "float32"), np.zeros((1000, 1), "float32")
"""

ORDER = """
def measure(size):
    model = build()
    split(model, size)
    model._symbolic_build(data_batch=(x[:1], y[:1]))
    variables = (
        model.trainable_variables,
        model.non_trainable_variables,
        model.optimizer.variables,
        model.metrics_variables,
    )
    state = tuple([one.value for one in some] for some in variables)
    compiled = jax.jit(model.train_step).lower(state, (x, y)).compile()
    return compiled.memory_analysis().temp_size_in_bytes

print(measure(1000), measure(600), measure(500))
"""

COMPILING = """
model = build()
micro_batches = make_micro_batches(model, 500, batchnorm=None)
install(model, micro_batches, batchnorm=None)
told = []
stop = load("events", "jax").after_compiling(lambda: told.append(1))

def count_compilations(size):
    micro_batches.resize(size)
    told.clear()
    model.fit(x, y, batch_size=1000, verbose=0)
    return len(told)

first, again, other = (count_compilations(size) for size in (500, 500, 250))
stop()
print(first > 0, again, other > 0, count_compilations(125))
"""


def test_the_rest_of_a_batch_is_not_computed_beside_its_micro_batches():
    whole_bytes, uneven_bytes, even_bytes = map(int, run(ORDER).split())

    assert even_bytes < 0.6 * whole_bytes
    assert uneven_bytes < 0.75 * whole_bytes


def test_compilations_are_told_of_and_a_size_that_stays_is_not_compiled_again():
    assert run(COMPILING).split() == ["True", "0", "True", "0"]


def run(script):
    done = subprocess.run(
        [sys.executable, "-c", BUILD + script],
        env={**os.environ, **QUIET, "KERAS_BACKEND": "jax"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
