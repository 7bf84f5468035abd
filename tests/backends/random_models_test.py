"""Models drawn at random: a coupling is found every time, and where there is none, none is.

Run by tests/backends/test_each_backend.py; 300 models a backend are `long`.
"""

import keras
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from exactness.random_models import (
    COUPLED_LAYERS,
    COUPLED_LOSSES,
    descriptions,
    make_batch,
    make_model,
)
from memfit.fitting.levers.micro_batches import describe_split
from memfit.fitting.proof.proof import prove
from memfit.fitting.proof.verdict import Outcome

# Half of them have no coupling. On TensorFlow and JAX a model takes some seconds.
NUMBER = {"torch": 30, "tensorflow": 10, "jax": 6}[keras.backend.backend()]
MANY = 300


def models(number):
    return settings(
        max_examples=number // 2,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def judge(said):
    keras.utils.clear_session(free_memory=False)
    keras.utils.set_random_seed(3)
    model = make_model(said)
    return prove(model, make_batch(said, model), describe_split(model, None))


def assert_same(said):
    verdict = judge(said)

    assert verdict.outcome is Outcome.SAME, verdict.why
    assert verdict.collects == ("largest" in said.metrics and said.losses[0] != "ignored")


def assert_found(said):
    verdict = judge(said)

    assert verdict.outcome is Outcome.DIFFERENT
    named = COUPLED_LAYERS.get(said.coupling, (None, None))[1]
    assert (named or f"'{COUPLED_LOSSES[said.coupling].__name__}'") in verdict.why


SINGLE = descriptions([None])
COUPLED = descriptions([*COUPLED_LAYERS, *COUPLED_LOSSES])


@models(NUMBER)
@given(SINGLE)
def test_models_that_treat_each_sample_by_itself_are_the_same(said):
    assert_same(said)


@models(NUMBER)
@given(COUPLED)
def test_a_coupling_is_found_and_named(said):
    assert_found(said)


@pytest.mark.long
@models(MANY)
@given(SINGLE)
def test_many_models_that_treat_each_sample_by_itself_are_the_same(said):
    assert_same(said)


@pytest.mark.long
@models(MANY)
@given(COUPLED)
def test_a_coupling_is_found_and_named_in_many_models(said):
    assert_found(said)
