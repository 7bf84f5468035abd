"""What is particular to JAX: XLA orders the work as it likes, and compiles each size.

Run by tests/backends/test_each_backend.py.
"""

import keras
import numpy as np
import pytest

from memfit.backends import load
from memfit.fitting.levers.micro_batches import install, make_micro_batches

pytestmark = pytest.mark.skipif(keras.backend.backend() != "jax", reason="XLA as JAX uses it")

X, Y = np.zeros((1000, 64), "float32"), np.zeros((1000, 1), "float32")


def build():
    x = inputs = keras.Input((64,))
    for _ in range(6):
        x = keras.layers.Dense(256, activation="gelu")(x)
    model = keras.Model(inputs, keras.layers.Dense(1)(x))
    model.compile("sgd", "mse")
    return model


def measure_bytes(size):
    import jax

    model = build()
    install(model, make_micro_batches(model, size, batchnorm=None), batchnorm=None)
    model._symbolic_build(data_batch=(X[:1], Y[:1]))
    variables = (
        model.trainable_variables,
        model.non_trainable_variables,
        model.optimizer.variables,
        model.metrics_variables,
    )
    state = tuple([one.value for one in some] for some in variables)
    compiled = jax.jit(model.train_step).lower(state, (X, Y)).compile()
    return compiled.memory_analysis().temp_size_in_bytes


def test_the_rest_of_a_batch_is_not_computed_beside_its_micro_batches():
    whole_bytes, uneven_bytes, even_bytes = map(measure_bytes, (1000, 600, 500))

    assert even_bytes < 0.6 * whole_bytes
    assert uneven_bytes < 0.75 * whole_bytes


def test_compilations_are_told_of_and_a_size_that_stays_is_not_compiled_again():
    model = build()
    micro_batches = make_micro_batches(model, 500, batchnorm=None)
    install(model, micro_batches, batchnorm=None)
    told = []
    stop = load("events", "jax").after_compiling(lambda: told.append(1))

    def count_compilations(size):
        micro_batches.resize(size)
        told.clear()
        model.fit(X, Y, batch_size=1000, verbose=0)
        return len(told)

    first, again, other = (count_compilations(size) for size in (500, 500, 250))
    stop()

    assert first > 0
    assert again == 0
    assert other > 0
    assert count_compilations(125) == 0
