"""Batches in micro-batches: one batch, one update of the weights, the memory of a micro-batch."""

import types
from collections.abc import Sequence
from typing import Any

from memfit.arguments import check_compiled, check_whole_number
from memfit.backends import load
from memfit.backends.micro_batches import MicroBatches
from memfit.errors import UsageError
from memfit.fitting.graph.batchnorm import explain_batchnorm, find_batchnorm, moving_statistics
from memfit.fitting.levers.batchnorm_exact import normalise_exactly
from memfit.fitting.levers.change import Change, forget_functions
from memfit.fitting.proof.proof import Lever
from memfit.keras_private.layers import all_layers
from memfit.keras_private.losses import given_metrics, metric_function
from memfit.keras_private.trainer import has_distribute_strategy

_STEPS = ("train_step", "test_step")
_BATCHNORM = ("exact", "micro")


def split(model: Any, size: int, *, batchnorm: str | None = None) -> Change:
    """Makes the model run every batch in micro-batches, with the result of the whole batch.

    The micro-batches run one after another inside the training step. Their gradients, weighted by
    their samples, make one update of the weights, so schedules, averages and loss scaling count
    batches as before; losses and metrics are those of the whole batch. `fit`, `evaluate`,
    `train_on_batch` and `test_on_batch` use it. Layers that draw random numbers, such as Dropout,
    draw different ones than for the whole batch.

    Args:
        model: A compiled Keras model that has no `train_step` of its own.
        size: Samples in a micro-batch.
        batchnorm: What a BatchNormalization layer, which looks at the whole batch, may do.
            `"exact"`: normalise over the whole batch, with the result of the whole batch. It
            takes one more forward pass, or more where micro-batches are small, and the input of
            each such layer stays in memory for the whole batch, as do the model's outputs. For
            Functional and Sequential models.
            `"micro"`: normalise each micro-batch by itself; its moving statistics move once a
            batch, by the mean over the micro-batches. Results differ from those of the whole batch.
            Without either a model with such a layer is refused.

    Returns:
        The change, to print or to undo.

    Raises:
        UsageError: The model cannot be split, and why.

    Example:
        ```python
        model.compile("adam", "mse")
        change = memfit.split(model, 32)
        model.fit(x, y, batch_size=256)
        change.undo()
        ```
    """
    size = check_whole_number("size", size)
    check_model(model)
    check_unguarded(model)
    normalising = find_batchnorm(model)
    check_batchnorm(batchnorm)
    if normalising and batchnorm is None:
        raise UsageError(explain_batchnorm(normalising))
    return install(model, make_micro_batches(model, size, batchnorm), batchnorm)


def make_micro_batches(model: Any, size: int, batchnorm: str | None) -> MicroBatches:
    """Returns how batches of this model are cut."""

    def look_again(micro_batches: MicroBatches) -> None:
        micro_batches.averaged = moving_statistics(model) if batchnorm == "micro" else []
        micro_batches.collects = micro_batches.collects or not adds_up(model)

    micro_batches = MicroBatches(size, look_again=look_again)
    look_again(micro_batches)
    return micro_batches


def describe_split(model: Any, batchnorm: str | None) -> Lever:
    """Returns micro-batches as a proof sees them; layers may train otherwise only if allowed."""
    normalising = find_batchnorm(model)
    is_exact = batchnorm == "exact" and bool(normalising)

    def cut(size: int, collects: bool) -> Change:
        averaged = moving_statistics(model) if batchnorm == "micro" else []
        micro_batches = MicroBatches(size, averaged, collects)
        return install(model, micro_batches, batchnorm)

    return Lever(
        cut,
        is_plain=not is_exact,
        frozen=normalising if batchnorm == "micro" else (),
        name=f"micro-batches, batchnorm={batchnorm if normalising else None}",
    )


def install(model: Any, micro_batches: MicroBatches, batchnorm: str | None) -> Change:
    """Puts steps that run in micro-batches into the model; exact ones are inside of its `call`."""
    is_exact = batchnorm == "exact" and bool(find_batchnorm(model))
    exact = normalise_exactly(model, micro_batches) if is_exact else None
    if exact is None and batchnorm != "micro":
        micro_batches.check_training = lambda: _check_still_frozen(model, batchnorm)
    steps = load("micro_batches")
    makers = {"train_step": steps.make_train_step, "test_step": steps.make_test_step}
    before = {name: model.__dict__[name] for name in _STEPS if name in model.__dict__}
    for name, make in makers.items():
        if exact is None or name != "train_step":
            object.__setattr__(model, name, types.MethodType(make(model, micro_batches), model))
    forget_functions(model)

    def undo() -> None:
        if exact is not None:
            exact.undo()
        for name in _STEPS:
            model.__dict__.pop(name, None)
        model.__dict__.update(before)
        forget_functions(model)

    size = micro_batches.size
    text = f"batches run in micro-batches of {size} samples, with one update for each batch"
    if micro_batches.averaged:
        text += (
            "; BatchNormalization looks at one micro-batch at a time, so results differ a little"
        )
    if exact is not None:
        text += f"; {exact}"
    return Change(text, undo)


def _check_still_frozen(model: Any, batchnorm: str | None) -> None:
    """Raises if the model normalises over the whole batch now, and did not when it was split."""
    thawed = find_batchnorm(model)
    if thawed and batchnorm is None:
        raise UsageError(explain_batchnorm(thawed))
    if thawed:
        raise UsageError(
            f"The layer {thawed[0].name!r} was frozen when the model was split, and trains now. "
            'Undo the split and call memfit.split(model, size, batchnorm="exact") again.'
        )


def check_batchnorm(batchnorm: object) -> None:
    """Raises if this is no way to treat BatchNormalization."""
    if batchnorm not in (None, *_BATCHNORM):
        raise UsageError(
            f'batchnorm must be "exact", "micro" or left out. Received: batchnorm={batchnorm!r}.'
        )


def check_model(model: Any) -> None:
    """Raises if batches of this model cannot be cut, and says why."""
    check_steps(model)
    _check_layers(model)


def check_steps(model: Any) -> None:
    """Raises if the steps of this model are not Keras's own for one device."""
    check_compiled(model)
    for name in _STEPS:
        if not getattr(type(model), name).__module__.startswith("keras."):
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
    if "make_train_function" in model.__dict__:
        raise UsageError(
            f"The model {model.name!r} is guarded, and the guard runs batches in its own way. Undo "
            "the guard first, or let it split the batches: memfit.guard(model, size=32)."
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
        if type(layer).__name__ == "SpectralNormalization":
            raise UsageError(
                f"The layer {layer.name!r} (SpectralNormalization) changes its weights each time "
                "it runs, so micro-batches would not be the same training."
            )


def adds_up(model: Any) -> bool:
    """Whether the model's metrics can be told of micro-batches one by one.

    Keras's own can: they sum over samples. Others might look at the batch as a whole.
    """
    import keras

    if type(model).compute_metrics is not keras.Model.compute_metrics:
        return False
    return all(
        one is None or isinstance(one, str) or _is_of_keras(one) for one in given_metrics(model)
    )


def _is_of_keras(metric: Any) -> bool:
    own = metric if isinstance(metric, types.FunctionType) else type(metric)
    kinds = (own, metric_function(metric))
    return all(one is None or one.__module__.startswith("keras.") for one in kinds)
