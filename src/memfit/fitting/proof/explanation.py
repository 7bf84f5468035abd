"""Why a lever is refused, in words, with what couples the samples named."""

from collections.abc import Sequence
from typing import Any

from memfit.fitting.proof import culprit
from memfit.fitting.proof.counters import Counter
from memfit.fitting.proof.differences import Errors
from memfit.fitting.proof.owners import name_attribute, name_loss, name_metric, name_state
from memfit.fitting.proof.rows import Rows
from memfit.fitting.proof.step import ProofStep

_NOT_THE_SAME = "Micro-batches would not be the same training"


class Explanation:
    """Looks for what is behind a difference, once there is one.

    Args:
        step: Runs the model.
        rows: What it was tried on.
    """

    def __init__(self, step: ProofStep, rows: Rows) -> None:
        self._step = step
        self._rows = rows

    def random_draws(self) -> str:
        """Two steps on the same rows differ."""
        who = culprit.find_random(self._step, self._rows) or "the model"
        return (
            f"The training cannot be compared: {who} draws random numbers that Keras does not "
            f"control, so {self._tried} gave two results in two steps. Draw with keras.random and "
            'a keras.random.SeedGenerator, or give allow=("unverified",) to train all the same.'
        )

    def zero_gradients(self) -> str:
        """There is nothing to compare."""
        return (
            f"The training cannot be compared: all gradients of {self._tried} are zero. Begin with "
            'a batch that the model learns from, or give allow=("unverified",) to train all the '
            "same."
        )

    def order(self, noise: Errors) -> str:
        """The same rows in another order give another result."""
        found = culprit.find_coupling(self._step, self._rows)
        return self._tell(found, noise, "depends on the order of the samples")

    def coupling(self) -> str:
        """Predictions of a sample change with the others, with some random numbers."""
        found = culprit.find_coupling(self._step, self._rows)
        return self._tell(found or "something in the model", Errors(), "")

    def loss(self, by_output: Sequence[float]) -> str:
        """The gradient of a loss differs for the same predictions."""
        worst = max(range(len(by_output)), key=lambda index: by_output[index])
        who = name_loss(self._step.model, worst)
        return (
            f"{_NOT_THE_SAME}: {who} is not a mean over samples, it looks at the batch as a whole: "
            f"in micro-batches its gradient differs by {_percent(by_output[worst])}. Train with "
            "whole batches, or use a loss that each sample has for itself."
        )

    def added_loss(self, value: float) -> str:
        """A loss that a layer adds differs; this is its value for the batch at once."""
        who = culprit.find_coupling(self._step, self._rows)
        if who is not None:
            return self._tell(who, Errors(), "")
        who = culprit.find_added_loss(self._step, self._rows, value) or "a layer"
        return (
            f"{_NOT_THE_SAME}: the loss that {who} adds is not a mean over samples. Train with "
            "whole batches, or add a mean over the samples."
        )

    def difference(self, beyond: Errors) -> str:
        """What the lever leaves differs."""
        found = None
        if any(beyond.gradients) or any(beyond.states):
            found = culprit.find_coupling(self._step, self._rows)
        return self._tell(found, beyond, "mixes the samples of a batch")

    def counting(self, counter: Counter) -> str:
        """The user's code counts calls."""
        who = name_attribute(counter.owner, counter.name)
        return self._say(who, "changes with every micro-batch instead of once a batch")

    def error(self, error: Exception) -> str:
        """The model raises when its batches are cut."""
        return (
            f"Batches of this model cannot be cut: {self._tried} run at once, and in micro-batches "
            f"of {self._rows.size} they raise {type(error).__name__}: {_first_line(error)}"
        )

    def _tell(self, found: str | None, errors: Errors, how: str) -> str:
        if found is not None:
            return (
                f"{_NOT_THE_SAME}: {found} mixes the samples of a batch: what it gives for one "
                "sample changes with the others. Train with whole batches, or use a layer that "
                "treats each sample for itself."
            )
        who, does = self._find_owner(errors, how)
        return self._say(who, does)

    @staticmethod
    def _say(who: str, does: str) -> str:
        return f"{_NOT_THE_SAME}: {who} {does}. Train with whole batches, or change that."

    def _find_owner(self, errors: Errors, how: str) -> tuple[str, str]:
        model = self._step.model
        state = _find_worst(errors.states, self._step.states)
        if state is not None:
            return name_state(model, state), "changes otherwise than once a batch"
        if any(errors.gradients):
            worst = max(errors.gradients)
            return "something in the model", f"{how}: gradients differ by {_percent(worst)}"
        metric = _find_worst(errors.metrics, self._step.metric_variables)
        if metric is not None:
            return name_metric(model, metric), "needs the batch as a whole"
        return "what fit() reports", "differs"

    @property
    def _tried(self) -> str:
        return f"{self._rows.number} rows of the first batch"


def _find_worst(errors: Sequence[float], variables: Sequence[Any]) -> Any | None:
    if not any(errors) or len(errors) != len(variables):
        return None
    return max(zip(errors, variables, strict=True), key=lambda pair: pair[0])[1]


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["(no message)"])[0]


def _percent(error: float) -> str:
    return f"{error:.0%}" if error > 0.01 else f"{error:.1g} of its size"
