"""TensorFlow: the compiled step takes the batch itself, so an iterator with it is put in place."""

import itertools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from memfit.backends.first_step import OnFirst, Which
from memfit.backends.first_step.held_function import HeldFunction
from memfit.keras_private.trainer import tensorflow_steps


def hold(
    model: Any,
    on_first: OnFirst,
    *,
    which: Which = "train",
    on_begin: Callable[[], None] | None = None,
) -> Callable[[], None]:
    """Calls `on_first` with the first batch of a training, before the step runs on it."""
    return HeldFunction(model, on_first, which, _intercept, on_begin).install()


def _intercept(holding: HeldFunction, function: Any, iterator: Any) -> Any:
    # Where a call runs several steps, it takes so many batches.
    taken = list(itertools.islice(iterator, holding.model.steps_per_execution))
    if not taken:
        return function(iterator)
    if isinstance(iterator, tf.data.Iterator):
        held = iter(_make_dataset(taken, iterator.element_spec))
    else:
        held = itertools.chain(taken, iterator)
    _trace(function, held, taken[0])
    holding.call_first(_without_optionals(taken[0]))
    del taken
    return holding.function(held)


def _make_dataset(batches: list[Any], spec: Any) -> tf.data.Dataset:
    """Returns a dataset of these batches that says of itself what theirs said.

    With another spec the step would be traced anew.
    """
    dataset = tf.data.Dataset.from_tensors(batches[0])
    for batch in batches[1:]:
        dataset = dataset.concatenate(tf.data.Dataset.from_tensors(batch))
    return tf.data.experimental.from_variant(tf.data.experimental.to_variant(dataset), spec)


def _trace(function: Any, held: Any, batch: Any) -> None:
    """Traces a compiled step, which builds what is not built; what it does then happens once."""
    on_iterator, on_batch = tensorflow_steps(function)
    if isinstance(held, tf.data.Iterator):
        step, data = on_iterator, held
    else:
        step, data = getattr(on_batch, "__wrapped__", None), batch
    if hasattr(step, "get_concrete_function"):
        step.get_concrete_function(data)


def _without_optionals(batch: Any) -> Any:
    """Puts `None` where the data has a `tf.experimental.Optional` instead, as a step sees it."""
    return tf.nest.map_structure(
        lambda leaf: None if isinstance(leaf, tf.experimental.Optional) else leaf, batch
    )


def make_feed(batch: Any) -> Any:
    """Returns a dataset of any number of samples, as that of arrays is; so the step is the same."""
    dataset = tf.data.Dataset.from_tensors(batch)
    spec = tf.nest.map_structure(_relax, dataset.element_spec)
    return tf.data.experimental.from_variant(tf.data.experimental.to_variant(dataset), spec)


def _relax(spec: Any) -> Any:
    if not isinstance(spec, tf.TensorSpec) or not spec.shape.rank:
        return spec
    return tf.TensorSpec([None, *spec.shape[1:]], spec.dtype)
