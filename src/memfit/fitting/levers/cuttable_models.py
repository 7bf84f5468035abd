"""Which models take micro-batches: what a look at their structure tells, before anything runs."""

from collections.abc import Sequence
from typing import Any

from memfit.arguments import check_compiled
from memfit.backends.first_step.held_function import find_below
from memfit.errors import UsageError
from memfit.fitting.levers.change import Marked
from memfit.keras_private.layers import all_layers
from memfit.keras_private.trainer import has_distribute_strategy

# Those whose batches memfit.split cuts now.
split_models = Marked()
_STEPS = ("train_step", "test_step")


def check_model(model: Any) -> None:
    """Raises if batches of this model cannot be cut, and says why."""
    check_steps(model)
    _check_layers(model)


def check_steps(model: Any) -> None:
    """Raises if the steps of this model are not Keras's own for one device."""
    check_compiled(model)
    for name in _STEPS:
        if name in vars(model) or not getattr(type(model), name).__module__.startswith("keras."):
            raise UsageError(
                f"{type(model).__name__} has a {name} of its own, which memfit does not rewrite. "
                "Compile with an optimizer that accumulates, such as "
                "keras.optimizers.Adam(gradient_accumulation_steps=4), and feed smaller batches; "
                "its limits: schedules and moving averages count the small batches, a batch that "
                "is short counts like a full one, and the last few of an epoch wait for the next."
            )
    if has_distribute_strategy(model):
        raise UsageError(
            f"The model {model.name!r} was created under a tf.distribute strategy. memfit does "
            "not split batches there; create it outside the strategy's scope."
        )


def check_unguarded(model: Any) -> None:
    """Raises if `memfit.guard` runs the batches of this model."""
    if find_below(model, "make_train_function") is not None:
        raise UsageError(
            f"The model {model.name!r} is guarded, and the guard runs batches in its own way. Undo "
            "the guard first, or let it split the batches: memfit.guard(model, size=32)."
        )


def check_whole(model: Any) -> None:
    """Raises if batches of this model are split already."""
    if model in split_models:
        raise UsageError(
            f"Batches of {model.name!r} run in micro-batches already. Undo that first: call undo() "
            "of what memfit.split() returned. To guard a model that is split, give the size to the "
            "guard: memfit.guard(model, size=32)."
        )


def has_fixed_batch(model: Any) -> bool:
    """Whether the model takes batches of one size only."""
    is_stateful = any(getattr(layer, "stateful", False) for layer in all_layers(model))
    return is_stateful or any(one.shape[0] is not None for one in _inputs(model))


def _inputs(model: Any) -> Sequence[Any]:
    """The inputs of a model that was built from them; a subclassed one has none."""
    return getattr(model, "inputs", None) or ()


def _check_layers(model: Any) -> None:
    for one in _inputs(model):
        if one.shape[0] is not None:
            raise UsageError(
                f"The input {one.name!r} is made for batches of {one.shape[0]} samples, so it "
                "takes no micro-batches. Leave the batch size out of keras.Input."
            )
    for layer in all_layers(model):
        if getattr(layer, "stateful", False):
            raise UsageError(
                f"The layer {layer.name!r} keeps a state from batch to batch (stateful=True), "
                "which micro-batches would mix up. Train without memfit.split()."
            )
