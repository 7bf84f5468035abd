"""One training step of a proof: through the model's own `fit`, and all that it leaves behind."""

import contextlib
import inspect
import random
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memfit.backends import load
from memfit.backends.arrays_on_disk import Kept
from memfit.fitting.proof.counters import find_counters
from memfit.fitting.proof.gradient_recorder import recorder_class
from memfit.fitting.proof.other_state import OtherState
from memfit.fitting.proof.rows import Rows, to_tensors
from memfit.fitting.state.saved_attributes import attributes_kept
from memfit.fitting.state.saved_state import Snapshot
from memfit.keras_private.layers import full_precision
from memfit.keras_private.trainer import build_with, find_fit, is_built, optimizer_replaced

_FUNCTIONS = ("train_function", "test_function", "predict_function")
_LEVERS = ("train_step", "test_step", "call", "make_train_function", "make_test_function")


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a step left behind.

    Attributes:
        gradients: By weight, in a file.
        states: The values of all other variables, in a file.
        counts: How far it moved numbers that the user's code counts in.
        metrics: The values of the variables of metrics.
        logs: What `fit` returned, by name.
    """

    gradients: Kept
    states: Kept
    counts: Sequence[float]
    metrics: Sequence[Any]
    logs: dict[str, float]


class ProofStep:
    """Runs steps from one state, with a recorder in the place of the optimizer.

    Args:
        model: A built and compiled model.
        snapshot: The state that every step begins with.
        runs_python: Whether every step of the training runs the user's code.
    """

    def __init__(self, model: Any, snapshot: Snapshot, *, runs_python: bool) -> None:
        self.model = model
        self._snapshot = snapshot
        self._fit = inspect.unwrap(find_fit(model))
        self._fresh_step: Any = None
        self._recorder = recorder_class()()
        self.weights = list(model.trainable_variables)
        self._others = OtherState(model)
        self.states = self._others.variables
        self.state_owners = self._others.owners
        self.counters = find_counters(model) if runs_python else []

    @property
    def metric_variables(self) -> list[Any]:
        """The variables of metrics; there are none before the first step."""
        return list(self.model.metrics_variables)

    def run(self, rows: Rows, seed: int) -> Footprint:
        """Runs one step on these rows.

        Args:
            rows: What to train on.
            seed: For what draws outside of Keras.
        """
        self.begin(seed)
        self._renew_step()
        counted = [one.read() for one in self.counters]
        with optimizer_replaced(self.model, self._recorder):
            self._recorder.build(self.weights)
            self._recorder.reset()
            given = load("proof").as_data(rows.batch)
            history = self._fit(self.model, **given, shuffle=False, verbose=0)
        return Footprint(
            Kept(load("proof").read(one.value) for one in self._recorder.gradients),
            Kept(self._others.read()),
            [one.read() - before for one, before in zip(self.counters, counted, strict=True)],
            [load("proof").read(one.value) for one in self.metric_variables],
            {name: values[-1] for name, values in history.history.items()},
        )

    def _renew_step(self) -> None:
        """Gives a model whose function is to be made a `train_step` that nobody has traced yet.

        JAX finds what it has traced by the function, and one bound to a model is the same each
        time: the trace of the training itself, or of a step without the lever, would run again.
        """
        own = vars(self.model)
        if self.model.train_function is None and own.get("train_step") is self._fresh_step:
            original = type(self.model).train_step

            def train_step(model: Any, *args: Any, **kwargs: Any) -> Any:
                return original(model, *args, **kwargs)

            self._fresh_step = own["train_step"] = types.MethodType(train_step, self.model)

    def begin(self, seed: int) -> None:
        """Puts the state back, and seeds what draws outside of Keras."""
        import numpy as np

        self._snapshot.restore()
        random.seed(seed)
        np.random.seed(seed)
        load("proof").set_seed(seed)


@contextlib.contextmanager
def proving(model: Any, rows: Rows, *, is_eager: bool) -> Iterator[ProofStep]:
    """Gives what runs steps of the model without its levers, in full precision; undone at the end.

    What Keras has compiled of the model is there again afterwards.

    Args:
        model: A compiled model.
        rows: What it is built with, losses and metrics too: all steps then do the same.
        is_eager: Whether steps run eagerly.
    """
    with contextlib.ExitStack() as changes:
        changes.enter_context(attributes_kept(model))
        changes.enter_context(load("proof").quickly())
        changes.enter_context(_without(model, _LEVERS))
        snapshot = changes.enter_context(Snapshot(model))
        if not is_built(model):
            build_with(model, to_tensors(rows.batch))
            snapshot = changes.enter_context(Snapshot(model))
        changes.enter_context(_set(model, **dict.fromkeys(_FUNCTIONS)))
        if model.steps_per_execution != 1:
            changes.enter_context(_set(model, steps_per_execution=1))
        changes.enter_context(_set(model, stop_training=False))
        runs_python = load("proof").RUNS_PYTHON or model.run_eagerly
        if is_eager and not model.run_eagerly:
            changes.enter_context(_set(model, run_eagerly=True))
        changes.enter_context(full_precision(model))
        yield ProofStep(model, snapshot, runs_python=runs_python)


@contextlib.contextmanager
def _without(model: Any, names: Sequence[str]) -> Iterator[None]:
    """Takes away what was set on the model itself, such as an installed lever."""
    attributes = vars(model)
    taken = {name: attributes.pop(name) for name in names if name in attributes}
    try:
        yield
    finally:
        for name in names:
            attributes.pop(name, None)
        attributes.update(taken)


@contextlib.contextmanager
def _set(model: Any, **values: Any) -> Iterator[None]:
    """Sets attributes for the block."""
    before = {name: getattr(model, name) for name in values if hasattr(model, name)}
    for name, value in values.items():
        setattr(model, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(model, name, value)
