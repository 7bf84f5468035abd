"""Every loss of `keras.losses`: classes, and functions, which `compile` takes as well."""

import inspect

import keras
import numpy as np
from keras import layers

from exactness.cases import Case, compiled, noise, one_hot, whole_numbers

# No losses: the base class, and what reads and writes them.
_NO_LOSS = {"Loss", "deserialize", "get", "serialize"}
# Sums over the samples of a batch by default (`axis=None`), or compares samples with each other.
_COUPLED = {"Dice", "Tversky", "dice", "tversky", "Circle", "circle"}
_PROBABILITIES = {
    "categorical": ("softmax", lambda: one_hot(3)),
    "categorical_generalized": ("softmax", lambda: whole_numbers(3)),
    "sparse_categorical": ("softmax", lambda: whole_numbers(3)),
    "binary": ("sigmoid", lambda: one_hot(3)),
    "dice": ("sigmoid", lambda: one_hot(3)),
    "tversky": ("sigmoid", lambda: one_hot(3)),
    "kl": ("softmax", lambda: one_hot(3) * 0.8 + 0.1),
    "poisson": ("softplus", lambda: np.abs(noise(3))),
    "mean_squared_logarithmic": ("softplus", lambda: np.abs(noise(3))),
    "hinge": ("tanh", lambda: one_hot(3) * 2 - 1),
    "squared_hinge": ("tanh", lambda: one_hot(3) * 2 - 1),
    "circle": (None, lambda: whole_numbers(3)),
}


def loss_cases():
    return [_case(name) for name in sorted(_names())]


def _names():
    own = inspect.getmembers(
        keras.losses, lambda one: inspect.isclass(one) or inspect.isfunction(one)
    )
    return {name for name, _ in own} - _NO_LOSS


def _case(name):
    given = getattr(keras.losses, name)
    make_loss = given if inspect.isclass(given) else lambda: _filled(given)
    words = keras.src.utils.naming.to_snake_case(name)
    if words == "ctc":
        return Case("losses", name, lambda: _sequences(make_loss()), _sequence_data)
    chosen = [prefix for prefix in _PROBABILITIES if words.startswith(prefix)]
    activation, targets = (
        _PROBABILITIES[max(chosen, key=len)] if chosen else (None, lambda: noise(3, seed=1))
    )
    culprit = words if name in _COUPLED else None

    def make():
        layer = layers.Dense(3, activation)
        return compiled(keras.Sequential([keras.Input((4,)), layer]), make_loss())

    return Case("losses", name, make, lambda: (noise(4), targets()), culprit)


def _filled(function):
    """The function, with what it needs beside targets and predictions."""
    if function is not keras.losses.categorical_generalized_cross_entropy:
        return function
    return lambda y_true, y_pred: function(y_true, y_pred, q=0.5)


def _sequences(loss):
    """Steps of a sequence, each with a score for each symbol."""
    return compiled(keras.Sequential([keras.Input((6, 4)), layers.Dense(5)]), loss)


def _sequence_data():
    return noise(6, 4), whole_numbers(4, 2) + 1
