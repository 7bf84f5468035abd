"""What is tried: a small model with its data, and whether its samples are coupled."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from conftest import compile_options

ROWS = 20
SIZE = 7  # micro-batches of 7, 7 and 6


@dataclass(frozen=True)
class Case:
    """A model and one batch of data.

    Attributes:
        family: What it belongs to, a row of the table.
        name: What it shows.
        make: Returns the compiled model.
        data: Returns inputs, targets and, if any, weights of a batch.
        culprit: What a refusal must name; `None` if each sample is treated by itself.
    """

    family: str
    name: str
    make: Callable[[], Any]
    data: Callable[[], tuple[Any, ...]]
    culprit: str | None = None

    def __str__(self):
        return f"{self.family}-{self.name}"


def noise(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal((ROWS, *shape)).astype("float32")


def whole_numbers(below, *shape, seed=0):
    return np.random.default_rng(seed).integers(0, below, (ROWS, *shape)).astype("int32")


def one_hot(kinds, *shape, seed=0):
    return np.eye(kinds, dtype="float32")[whole_numbers(kinds, *shape, seed=seed)]


def optimizer():
    """After one update its momentum is the gradient, with the sign changed."""
    return keras.optimizers.SGD(1.0, momentum=0.9)


def compiled(model, loss="mse", **options):
    model.compile(options.pop("optimizer", None) or optimizer(), loss, **compile_options(**options))
    return model
