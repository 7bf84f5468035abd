"""Fewer bits: layers compute in half precision, their weights stay in float32."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from memfit.arguments import check_keras_model
from memfit.errors import UsageError
from memfit.fitting.levers.change import Change, forget_functions
from memfit.keras_private.graph import find_maker, inputs_of_call, last_outputs
from memfit.keras_private.layers import all_layers, direct_layers, keeps_full_precision
from memfit.keras_private.optimizer import trained_variables
from memfit.keras_private.trainer import set_optimizer
from memfit.units import format_size

_COMPUTE = {"mixed_bfloat16": "bfloat16", "mixed_float16": "float16"}
_PLAIN_POLICIES = frozenset({"DTypePolicy", "FloatDTypePolicy"})
_PROBABILITIES = frozenset({"softmax", "log_softmax", "sigmoid"})
_MOST_NAMES = 3


def reduce_precision(model: Any, to: str = "mixed_bfloat16") -> Change:
    """Makes the layers of a model compute in half precision, as Keras's mixed policies do.

    What layers keep for the backward pass is half as large, at the cost of a copy of their
    weights in half precision in each step, so a model that is mostly weights gains little. Weights,
    the optimizer's state and the loss stay in float32, and so do layers that make the model's
    outputs, layers that prepare data and layers with a policy of their own. For float16 the loss
    of a compiled model is scaled. Results change: call it only where the user agreed.

    Layers that do not exist yet are not changed; build the model first.

    Args:
        model: A Keras model, best a built one.
        to: `"mixed_bfloat16"` or `"mixed_float16"`.

    Returns:
        What was changed. Its `undo()` puts policies and optimizer back.

    Raises:
        UsageError: If `to` is another policy or `model` is not a Keras model.

    Example:
    ```python
    change = reduce_precision(model, to="mixed_bfloat16")
    model.fit(x, y)
    change.undo()
    ```
    """
    if to not in _COMPUTE:
        raise UsageError(f"`to` must be one of {', '.join(_COMPUTE)}. Received: to={to!r}.")
    check_keras_model(model)
    import keras

    units = _unique(_units(model))
    own = _with_own_policy(units)
    finals = [one for one in _unique(_finals(model)) if _is_float32(one)]
    kept = {id(one) for one in (*own, *finals)}
    changing = [one for one in units if _is_float32(one) and id(one) not in kept]
    lowered = [one for unit in changing for one in _inside(unit) if _is_float32(one)]
    if all(isinstance(one, keras.Model) for one in changing):
        return Change("no layer computes in float32 that could use a lower precision", lambda: None)
    policy = keras.DTypePolicy(to)
    before = [(layer, layer.dtype_policy) for layer in lowered]
    for layer in lowered:
        layer.dtype_policy = policy
    unscale = _scale_loss(model) if to == "mixed_float16" else lambda: None
    for unit in units:
        forget_functions(unit)

    def undo() -> None:
        for layer, policy_before in before:
            if layer.dtype_policy is policy:  # else the user has set another since
                layer.dtype_policy = policy_before
        unscale()
        for unit in units:
            forget_functions(unit)

    return Change(_in_words(changing, finals, own, _COMPUTE[to]), undo)


def _is_float32(layer: Any) -> bool:
    """Whether a layer computes in float32 and may compute in less."""
    policy = layer.dtype_policy
    is_plain = type(policy).__name__ in _PLAIN_POLICIES and policy.name == "float32"
    return is_plain and not keeps_full_precision(layer)


def _units(owner: Any) -> Iterator[Any]:
    """A model and the layers in it that are changed as one, from the outside in."""
    yield owner
    if _is_open(owner):
        for layer in direct_layers(owner):
            yield from _units(layer)


def _is_open(layer: Any) -> bool:
    """Whether the layers inside are a user's choice, each for itself.

    Inside a layer of Keras they are not: a cell computes in what its layer computes in.
    """
    import keras

    is_written_by_user = not type(layer).__module__.startswith("keras.")
    return isinstance(layer, keras.Model) or bool(is_written_by_user and direct_layers(layer))


def _inside(unit: Any) -> list[Any]:
    return [unit] if _is_open(unit) else all_layers(unit)


def _with_own_policy(units: Sequence[Any]) -> list[Any]:
    """The layers that the user gave a policy of their own, though it is float32 too.

    Keras hands one and the same policy object to all layers that are given none. Where most
    layers do not share one, as in a model that was loaded or cloned, this cannot be told.
    """
    import keras

    candidates = [one for one in units if _is_float32(one)]
    counts = Counter(id(one.dtype_policy) for one in candidates)
    shared, count = counts.most_common(1)[0] if counts else (0, 0)
    if 2 * count <= len(candidates):
        return []
    layers = [one for one in candidates if not isinstance(one, keras.Model)]
    return [one for one in layers if id(one.dtype_policy) != shared]


def _finals(owner: Any) -> Iterator[Any]:
    """The layers that give the outputs of a model.

    Where its graph is not known: those among its layers that give probabilities.
    """
    import keras

    if not _is_open(owner):
        yield owner
    elif isinstance(owner, keras.Sequential):
        for layer in owner.layers[-1:]:
            yield from _finals(layer)
    elif getattr(owner, "outputs", None):
        for layer in _givers(owner.outputs):
            yield from _finals(layer)
    else:
        for layer in direct_layers(owner):
            yield from (one for one in _finals(layer) if _gives_probabilities(one))


def _givers(tensors: Iterable[Any]) -> Iterator[Any]:
    """The nearest layers from which symbolic tensors were computed."""
    import keras

    pending, seen = list(tensors), set()
    while pending:
        tensor = pending.pop()
        operation, node_index = find_maker(tensor)
        if (id(operation), node_index) in seen:
            continue
        seen.add((id(operation), node_index))
        if isinstance(operation, keras.Layer):
            yield operation
        else:
            pending.extend(inputs_of_call(operation, node_index))


def _gives_probabilities(layer: Any) -> bool:
    activation = getattr(getattr(layer, "activation", None), "__name__", None)
    return activation in _PROBABILITIES or type(layer).__name__ == "Softmax"


def _scale_loss(model: Any) -> Callable[[], None]:
    """Wraps the optimizer as Keras's own `compile` does for float16; its state goes on."""
    import keras

    optimizer = getattr(model, "optimizer", None)
    if (
        optimizer is None
        or isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
        or optimizer.loss_scale_factor is not None  # the user scales it already
    ):
        return lambda: None
    scaling = keras.optimizers.LossScaleOptimizer(optimizer, name="loss_scale_optimizer")
    if optimizer.built:
        _build_around(scaling, optimizer)
    set_optimizer(model, scaling)

    def unscale() -> None:
        if model.optimizer is scaling:  # else the user has compiled again
            set_optimizer(model, optimizer)

    return unscale


def _build_around(scaling: Any, optimizer: Any) -> None:
    """Builds the outer optimizer only: a user's own may start anew when it is built twice."""
    optimizer.build = lambda _variables: None
    try:
        scaling.build(trained_variables(optimizer))
    finally:
        del optimizer.build


def _in_words(changing: Sequence[Any], finals: Sequence[Any], own: Sequence[Any], to: str) -> str:
    import keras

    count = sum(not isinstance(one, keras.Model) for one in changing)
    size_bytes = _output_bytes(changing)
    sizes = (
        f" ({format_size(size_bytes / 2)} instead of {format_size(size_bytes)} a sample in their "
        "outputs)"
        if size_bytes
        else ""
    )
    text = (
        f"{'1 layer computes' if count == 1 else f'{count} layers compute'} in {to}: activations "
        f"take half the bytes{sizes}, weights stay in float32 and are copied in {to} for each "
        "step, results change"
    )
    for layers, why in ((finals, "for the outputs"), (own, "as set by you")):
        names = [one.name for one in layers]
        if names:
            more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
            text += f"; float32 {why}: {', '.join(names[:_MOST_NAMES])}{more}"
    return text


def _output_bytes(layers: Iterable[Any]) -> int | None:
    """Bytes in float32 of what layers put out for one sample; `None` where shapes are open."""
    import keras

    total_bytes = 0
    for layer in layers:
        if isinstance(layer, keras.Model):
            continue
        for tensor in last_outputs(layer):
            if None in tensor.shape[1:]:
                return None
            total_bytes += 4 * math.prod(tensor.shape[1:])
    return total_bytes or None


def _unique(layers: Iterable[Any]) -> list[Any]:
    return list({id(one): one for one in layers}.values())
