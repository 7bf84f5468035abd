"""A part of a Keras graph that runs without changing anything: variables and losses come back.

The first run tells what changed, and it is done once, outside. A second run in the backward pass
starts from the same state, so it has the same Dropout masks and moves no statistics.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memfit.backends import load
from memfit.backends.recompute import BlockResult
from memfit.keras_private.graph import Caller
from memfit.keras_private.layers import forget_losses, get_mask, set_mask, uncast
from memfit.keras_private.state import (
    outer_stateless_scope,
    read_surroundings,
    shared_seed,
    surrounded,
)


@dataclass(frozen=True, eq=False, slots=True)
class GraphPart:
    """Some calls of layers that follow each other in a Keras graph.

    Attributes:
        nodes: The calls, in order.
        inputs: Symbolic tensors that they read and do not make.
        outputs: Symbolic tensors that they make and others read.
    """

    nodes: tuple[Any, ...]
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]

    @property
    def layers(self) -> list[Any]:
        """The layers that are called, each once."""
        operations = {id(node.operation): node.operation for node in self.nodes}
        return [one for one in operations.values() if hasattr(one, "trainable_variables")]

    def run(self, tensors: dict[int, Any], caller: Caller) -> None:
        """Calls the layers; reads and adds tensors by the identity of symbolic ones."""
        import keras

        for node in self.nodes:
            args, kwargs = node.arguments.fill_in(tensors)
            result = caller(node.operation)(*args, **kwargs)
            # On torch, `tree` leaves garbage that holds the tensors until it is collected.
            results = keras.tree.flatten(result) if len(node.outputs) > 1 else _single(result)
            for symbol, tensor in zip(node.outputs, results, strict=True):
                tensors[id(symbol)] = tensor

    def run_recomputed(self, tensors: dict[int, Any], caller: Caller) -> None:
        """Does what `run` does, keeps nothing from inside and runs again in the backward pass."""
        trainable, state = self.variables()
        pure = PureRun(self, trainable, state, caller, tensors)
        with uncast():
            trainable_values = [one.value for one in trainable]
            state_values = [one.value for one in state]
        result = load("recompute").run_recomputed(
            pure.run, trainable_values, state_values, pure.given
        )
        pure.take_over(result, tensors)

    def variables(self) -> tuple[list[Any], list[Any]]:
        """Returns the trainable variables and all others."""
        layers = self.layers
        trainable = {id(one): one for layer in layers for one in layer.trainable_variables}
        state = {id(one): one for layer in layers for one in layer.non_trainable_variables}
        if load("recompute").SHARES_SEED:
            seed = shared_seed()
            state[id(seed)] = seed
        return list(trainable.values()), [one for key, one in state.items() if key not in trainable]


class PureRun:
    """The runs of one part for one call of the model."""

    def __init__(
        self,
        part: GraphPart,
        trainable: Sequence[Any],
        state: Sequence[Any],
        caller: Caller,
        tensors: Mapping[int, Any],
    ) -> None:
        self._part = part
        self._trainable = trainable
        self._state = state
        self._caller = caller
        self._surroundings = read_surroundings()
        found = [(id(one), tensors[id(one)]) for one in part.inputs]
        tensors_given = [(key, tensor) for key, tensor in found if tensor is not None]
        masks_given = [
            (key, mask) for key, tensor in tensors_given if (mask := get_mask(tensor)) is not None
        ]
        self.given = [tensor for _, tensor in (*tensors_given, *masks_given)]
        self._given_keys = [key for key, _ in tensors_given]
        self._mask_keys = [key for key, _ in masks_given]
        # Told by the run: which outputs there are, which have masks, whose losses.
        self._made_keys: list[int] = []
        self._made_mask_keys: list[int] = []
        self._loss_owners: list[Any] = []

    @property
    def num_masks(self) -> int:
        """How many of the last run's outputs are masks; losses follow them."""
        return len(self._made_mask_keys)

    def run(
        self, trainable: Sequence[Any] | None, state: Sequence[Any], given: Sequence[Any]
    ) -> BlockResult:
        """Runs the part and returns outputs, masks and losses, and what became of the state."""
        import keras

        local = dict(zip(self._given_keys, given, strict=False))
        for key, mask in zip(self._mask_keys, given[len(self._given_keys) :], strict=True):
            set_mask(local[key], mask)
        for symbol in self._part.inputs:
            local.setdefault(id(symbol), None)
        mapping = list(zip(self._state, state, strict=True))
        if trainable is not None:
            mapping += zip(self._trainable, trainable, strict=True)
        with surrounded(self._surroundings):
            outer = outer_stateless_scope()
            scope = keras.StatelessScope(mapping, collect_losses=True)
            before = dict(scope.state_mapping)
            if outer is not None:  # variables of others that a layer reads
                scope.state_mapping = {**outer.state_mapping, **before}
            with scope:
                try:
                    self._part.run(local, self._caller)
                finally:
                    owners = forget_losses(self._part.layers, scope.losses)
        self._loss_owners = owners
        updates = {
            place: scope.get_current_value(one)
            for place, one in enumerate(self._state)
            if scope.get_current_value(one) is not before[id(one)]
        }
        return BlockResult([*self._collect(local), *scope.losses], updates)

    def _collect(self, local: Mapping[int, Any]) -> list[Any]:
        keys = [id(one) for one in self._part.outputs]
        masks = {key: mask for key in keys if (mask := get_mask(local[key])) is not None}
        self._made_keys, self._made_mask_keys = keys, list(masks)
        return [*(local[key] for key in keys), *masks.values()]

    def take_over(self, result: BlockResult, tensors: dict[int, Any]) -> None:
        """Does what the run would have done: tensors, masks, losses and state, once."""
        made = iter(result.outputs)
        for key in self._made_keys:
            tensors[key] = next(made)
        for key in self._made_mask_keys:
            set_mask(tensors[key], next(made))
        for owner, loss in zip(self._loss_owners, made, strict=True):
            owner.add_loss(loss)
        for place, value in result.updates.items():
            self._state[place].assign(value)


def _single(result: Any) -> list[Any]:
    return list(result) if isinstance(result, list | tuple) else [result]
