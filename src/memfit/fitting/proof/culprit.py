"""Which layer or operation couples the samples of a batch, or draws numbers by itself.

A forward pass runs again and again with one thing changed; the first operation whose result changes
where it should not is the one.
"""

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

from memfit.fitting.proof.differences import value_errors
from memfit.fitting.proof.rows import Rows, to_tensors
from memfit.fitting.proof.step import ProofStep
from memfit.keras_private.layers import all_layers, own_added_losses
from memfit.keras_private.operations import listening_to_calls
from memfit.keras_private.trainer import call_model

_CHANGED = 1e-5
_CHANGED_BY_CUT = 1e-4
# An operation, and the arrays that it returned.
_Call = tuple[Any, Sequence[Any]]


def find_random(step: ProofStep, rows: Rows) -> str | None:
    """Returns what gives another result with other seeds, in words."""
    with contextlib.suppress(Exception):  # some models run inside of a graph only
        return _find_random(step, rows)
    return None


def _find_random(step: ProofStep, rows: Rows) -> str | None:
    calls = _trace(step, rows.batch, 1), _trace(step, rows.batch, 2)
    return _first(calls, lambda one, other: _apart(one, other) > _CHANGED)


def find_coupling(step: ProofStep, rows: Rows) -> str | None:
    """Returns what lets a sample change the result of another, in words."""
    with contextlib.suppress(Exception):
        return _find_coupling(step, rows)
    return None


def _find_coupling(step: ProofStep, rows: Rows) -> str | None:
    calls = _trace(step, rows.batch, 1)
    for row in (0, rows.number - 1, rows.number // 2):
        traces = calls, _trace(step, _exchange(rows, row), 1)
        found = _first(traces, functools.partial(_others_apart, row))
        if found is not None:
            return _first(traces, functools.partial(_is_of_all, rows.number)) or found
    return _find_by_cut(step, rows, calls)


def _find_by_cut(step: ProofStep, rows: Rows, calls: Sequence[_Call]) -> str | None:
    """What gives a sample another result in a micro-batch than in the batch."""
    for index, (part, _) in enumerate(rows.parts()):
        own = slice(index * rows.size, (index + 1) * rows.size)
        found = _first((calls, _trace(step, part, 1)), functools.partial(_differs, rows, own))
        if found is not None:
            return found
    return None


def _differs(rows: Rows, own: slice, whole: Any, few: Any) -> bool:
    """Whether the rows of a micro-batch differ from the same rows of the batch."""
    if len(whole) != rows.number or len(few) != len(whole[own]):
        return False
    return _apart(whole[own], few) > _CHANGED_BY_CUT


def _is_of_all(number: int, one: Any, other: Any) -> bool:
    """Whether a result that has no rows, such as a mean over them, has changed."""
    return one.size % number != 0 and _apart(one, other) > _CHANGED


def _trace(step: ProofStep, batch: Any, seed: int) -> list[_Call]:
    """The operations of a forward pass in the order in which they end."""
    import keras
    from keras import ops

    calls: list[_Call] = []

    def listen(operation: Any, outputs: Any) -> None:
        flat = [one for one in keras.tree.flatten(outputs) if ops.is_tensor(one)]
        calls.append((operation, [ops.convert_to_numpy(one) for one in flat]))

    step.begin(seed)
    with listening_to_calls(listen):
        call_model(step.model, to_tensors(batch)[0], is_training=True)
    return calls


def _first(
    traces: tuple[Sequence[_Call], Sequence[_Call]], differs: Callable[[Any, Any], bool]
) -> str | None:
    for (operation, outputs), (_, others) in zip(*traces, strict=False):
        pairs = zip(outputs, others, strict=False)
        if any(one.ndim and other.ndim and differs(one, other) for one, other in pairs):
            return name_operation(operation)
    return None


def name_operation(operation: Any) -> str:
    """Returns a layer or operation in words, with the name that the user gave it."""
    import keras

    kind = "layer" if isinstance(operation, keras.Layer) else "operation"
    return f"the {kind} {operation.name!r} ({type(operation).__name__})"


def _exchange(rows: Rows, row: int) -> Any:
    """The batch with one row that is like its neighbour."""
    import keras
    import numpy as np

    def exchange(leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray):
            return leaf
        changed = leaf.copy()
        changed[row] = leaf[(row + 1) % rows.number]
        return changed

    return keras.tree.map_structure(exchange, rows.batch)


def _others_apart(row: int, one: Any, other: Any) -> bool:
    import numpy as np

    if one.shape != other.shape or len(one) <= row:
        return bool(one.shape != other.shape)
    others = np.arange(len(one)) != row
    return _apart(one[others], other[others]) > _CHANGED


def _apart(one: Any, other: Any) -> float:
    return value_errors([one], [other])[0]


def find_added_loss(step: ProofStep, rows: Rows, value: float) -> str | None:
    """Returns the layer that adds a loss with this value."""
    added = _added_by_layer(step, rows.batch)
    if not added:
        return None
    return name_operation(min(added, key=lambda one: abs(one[1] - value))[0])


def _added_by_layer(step: ProofStep, batch: Any) -> list[tuple[Any, float]]:
    """Each layer that adds losses, with their sum; the model must run outside of a step."""
    from keras import ops

    step.begin(seed=1)
    call_model(step.model, to_tensors(batch)[0], is_training=True)
    return [
        (layer, float(ops.convert_to_numpy(ops.sum(loss))))
        for layer in all_layers(step.model)
        for loss in own_added_losses(layer)
    ]
