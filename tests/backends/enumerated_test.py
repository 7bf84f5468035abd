"""All that Keras has, and what the documentation says, in micro-batches: exact, or refused by name.

Run by tests/backends/test_each_backend.py. The cases are those of tests/exactness; `make exact`
prints what became of them. What is exact is compared with plain Keras, not by the proof.
"""

import inspect

import keras
import pytest
from keras import layers

from exactness.all_cases import all_cases
from exactness.keras_layers import NO_LAYER, ROWS_OF_LAYERS
from exactness.trial import try_case

BACKEND = keras.backend.backend()
# A case takes a quarter of a second on torch, elsewhere some seconds: most are `long`.
EVERY = {"torch": 3, "tensorflow": 24, "jax": 48}[BACKEND]


def chosen():
    for number, case in enumerate(all_cases()):
        marks = [] if number % EVERY == 0 else [pytest.mark.long]
        yield pytest.param(case, marks=marks, id=str(case))


@pytest.mark.parametrize("case", chosen())
def test_a_case_is_exact_or_refused_with_its_culprit_named(case):
    result = try_case(case)

    assert result.outcome == ("refused" if case.culprit else "ok"), result.why


def test_there_are_enough_cases():
    assert len(all_cases()) >= 120


def test_every_row_is_of_a_layer_that_keras_has():
    names = {kind.__name__ for _, kind in inspect.getmembers(layers, inspect.isclass)}

    assert set(ROWS_OF_LAYERS) <= names
    assert names >= NO_LAYER - {"TorchModuleWrapper", "FlaxLayer", "JaxLayer"}
