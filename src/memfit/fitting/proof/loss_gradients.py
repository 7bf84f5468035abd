"""Losses by themselves: their gradient by the predictions, for the batch at once and in parts.

No activations are needed for that, so it is done with far more rows than a whole step has room for.
A loss that compares few of many samples, such as a triplet loss, shows only there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memfit.backends import load
from memfit.backends.micro_batches.loss_weights import NeedsTotalsError, counted, weighed
from memfit.backends.proof import Predict
from memfit.fitting.proof.differences import gradient_errors, root_mean_square, value_errors
from memfit.fitting.proof.rows import Rows, leaves, more_rows, take, to_tensors
from memfit.keras_private.draws import HeldDraws
from memfit.keras_private.layers import set_mask
from memfit.keras_private.losses import built_losses, compute_loss, untracked

# Predictions and their gradients are in memory a few times.
_MOST_BYTES = 2**25
# Models that add a loss in each of many layers add the same in all.
_MOST_ADDED = 8
# Enough that two samples of a class meet, and quick.
_MOST_ROWS = 256


@dataclass(frozen=True, slots=True)
class LossErrors:
    """How far losses in parts lie from those of the batch.

    Attributes:
        by_output: For each output of the model, the error of the gradient by its predictions.
        added: For each loss that layers add, the error of its value.
        added_values: The values for the batch at once.
    """

    by_output: Sequence[float]
    added: Sequence[float]
    added_values: Sequence[float] = ()


def measure_losses(model: Any, batch: Any, few: Rows, predict: Predict) -> LossErrors:
    """Returns how far the losses of micro-batches lie from those of the batch.

    Args:
        model: A built and compiled model, outside of any training step.
        batch: The whole batch.
        few: The rows of it that fit into one step.
        predict: Runs forward passes of the model.
    """
    with counted() as reduced:
        first, masks, whole = predict(to_tensors(few.batch)[0])
    if reduced:  # a loss of Keras that a layer adds is weighed by micro-batches: the step tells
        whole = []
    added = [0.0] * len(whole)
    for part, share in few.parts() if whole else ():
        _, _, found = predict(to_tensors(part)[0])
        added = [total + share * _number(one) for total, one in zip(added, found, strict=True)]
    values = [_number(one) for one in whole]
    added_errors = value_errors(values, added)
    if not _has_loss(model):
        return LossErrors([], added_errors, values)
    row_bytes = sum(map(_count_bytes, leaves(first))) / few.number
    rows = more_rows(batch, few, min(_MOST_ROWS, int(_MOST_BYTES / max(row_bytes, 1))))
    predictions = _Predictions(model, rows, [(first, masks)])
    predictions.add_others(predict, few.number)
    errors = predictions.compare(rows.batch)
    tiled = _tile_targets(rows)
    if tiled is not None:
        again = predictions.compare(tiled)
        errors = [max(pair) for pair in zip(errors, again, strict=True)]
    return LossErrors(errors, added_errors, values)


def _has_loss(model: Any) -> bool:
    """Whether the model has a loss beside those that layers add."""
    import keras

    return bool(built_losses(model)) or type(model).compute_loss is not keras.Model.compute_loss


def measure_added(model: Any, held: HeldDraws, few: Rows, number: int) -> list[float]:
    """Returns the errors of the gradients of added losses, each by itself.

    A loss by the statistics of a batch may hardly differ in its value where its gradient does.

    Args:
        model: A built model, outside of any training step.
        held: Its draws.
        few: The rows.
        number: How many losses are added.
    """
    differentiate = load("proof").make_added_gradient(model, held)
    errors = []
    for index in range(min(number, _MOST_ADDED)):
        whole = differentiate(to_tensors(few.batch)[0], index)
        parts = [
            [share * one for one in differentiate(to_tensors(part)[0], index)]
            for part, share in few.parts()
        ]
        summed = [sum(each) for each in zip(*parts, strict=True)]
        errors += [max(gradient_errors(whole, summed, root_mean_square(whole)), default=0.0)]
    return errors


def measure_predictions(rows: Rows, predict: Predict) -> float:
    """Returns how far predictions of micro-batches lie from those of the batch."""
    whole, _, _ = predict(to_tensors(rows.batch)[0])
    parts = [leaves(predict(to_tensors(part)[0])[0]) for part, _ in rows.parts()]
    joined = [_number(_join(each)) for each in zip(*parts, strict=True)]
    return max(value_errors([_number(one) for one in leaves(whole)], joined), default=0.0)


class _Predictions:
    """Predictions of many rows, made some rows at a time.

    Args:
        model: Has the losses.
        rows: All rows.
        made: Predictions of the first rows, with their masks.
    """

    def __init__(self, model: Any, rows: Rows, made: list[tuple[Any, list[Any]]]) -> None:
        self._model = model
        self.rows = rows
        self._made = made
        self._whole = load("proof").make_gradient(model, self._loss)
        self._in_parts = load("proof").make_gradient(model, self._sum_of_parts)

    def add_others(self, predict: Predict, step: int) -> None:
        """Makes those of the rows that are missing, so many at a time."""
        for begin in range(step, self.rows.number, step):
            x, _, _ = to_tensors(take(self.rows.batch, begin, begin + step))
            self._made.append(predict(x)[:2])
        self._structure = self._made[0][0]
        self._tensors = [
            _join(parts) for parts in zip(*(leaves(one) for one, _ in self._made), strict=True)
        ]
        self._masks = [_join(parts) for parts in zip(*(one for _, one in self._made), strict=True)]

    def compare(self, batch: Any) -> list[float]:
        """Returns the error of the gradient by each output, with these targets."""
        whole = self._whole(batch, self._tensors)
        parts = self._in_parts(batch, self._tensors)
        return gradient_errors(whole, parts, root_mean_square(whole))

    def _loss(
        self, batch: Any, given: Sequence[Any], begin: int = 0, end: int | None = None
    ) -> Any:
        import keras

        end = self.rows.number if end is None else end
        x, y, sample_weight = to_tensors(_fresh(take(batch, begin, end)))
        flat = [one[begin:end] for one in given]
        for one, mask in zip(flat, self._masks, strict=True):
            if mask is not None:
                set_mask(one, mask[begin:end])
        y_pred = keras.tree.pack_sequence_as(self._structure, flat)
        with untracked(self._model):
            return compute_loss(
                self._model, x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=True
            )

    def _sum_of_parts(self, batch: Any, given: Sequence[Any]) -> Any:
        try:
            return self._add_up(batch, given, None)
        except NeedsTotalsError:
            return self._add_up(batch, given, self._count(batch, given))

    def _add_up(self, batch: Any, given: Sequence[Any], totals: Any) -> Any:
        total: Any = 0.0
        for begin, end, share in self._bounds():
            with weighed(share, totals):
                total = total + share * self._loss(batch, given, begin, end)
        return total

    def _count(self, batch: Any, given: Sequence[Any]) -> Any:
        totals: list[Any] | None = None
        for begin, end, _ in self._bounds():
            with counted() as counts:
                self._loss(batch, given, begin, end)
            pairs = zip(totals or [0.0] * len(counts), counts, strict=True)
            totals = [one + other for one, other in pairs]
        return totals

    def _bounds(self) -> list[tuple[int, int, float]]:
        number, size = self.rows.number, self.rows.size
        ends = [(begin, min(begin + size, number)) for begin in range(0, number, size)]
        return [(begin, end, (end - begin) / number) for begin, end in ends]


def _tile_targets(rows: Rows) -> Any:
    """The rows with each target twice, far from each other; `None` if there are no targets.

    Losses that compare samples of a class see nothing where each class occurs once.
    """
    import keras
    import numpy as np

    x, y, sample_weight = rows.batch
    if y is None or rows.number < 4:
        return None
    half = rows.number // 2
    indices = np.arange(rows.number) % half

    def tile(leaf: Any) -> Any:
        return leaf[indices] if isinstance(leaf, np.ndarray) else leaf

    return x, keras.tree.map_structure(tile, y), sample_weight


def _fresh(batch: Any) -> Any:
    """Copies: Keras writes into weights on one backend."""
    import keras
    import numpy as np

    return keras.tree.map_structure(
        lambda leaf: np.array(leaf) if isinstance(leaf, np.ndarray) else leaf, batch
    )


def _join(parts: Sequence[Any]) -> Any:
    from keras import ops

    return None if parts[0] is None else ops.concatenate(list(parts))


def _count_bytes(tensor: Any) -> int:
    from keras import ops

    return int(ops.convert_to_numpy(tensor).nbytes)


def _number(value: Any) -> Any:
    from keras import ops

    return ops.convert_to_numpy(value)
