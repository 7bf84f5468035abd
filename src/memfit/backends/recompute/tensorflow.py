"""TensorFlow: a custom gradient that runs the block again.

`tf.recompute_grad` takes neither masks nor state, and gives zeros where there is no gradient.
"""

from collections.abc import Sequence
from typing import Any

from memfit.backends.recompute import BlockResult, PureBlock

SHARES_SEED = True


def run_recomputed(
    block: PureBlock, trainable: Sequence[Any], state: Sequence[Any], inputs: Sequence[Any]
) -> BlockResult:
    """Runs `block` unrecorded; the gradient runs it again, recorded, once it is asked for."""
    import tensorflow as tf

    # There is no public way to stop recording on tapes that others opened.
    from tensorflow.python.eager import record

    num_trainable, num_state = len(trainable), len(state)
    places: list[int] = []  # of the state that changes, found by the run

    def run(tensors: Sequence[Any]) -> list[Any]:
        weights = tensors[:num_trainable]
        others = tensors[num_trainable : num_trainable + num_state]
        result = block(weights, others, tensors[num_trainable + num_state :])
        places[:] = list(result.updates)
        return [*result.outputs, *result.updates.values()]

    @tf.custom_gradient  # type: ignore[untyped-decorator]  # TensorFlow has no types
    def run_now(*tensors: Any) -> Any:
        with record.stop_recording():
            made = run(tensors)

        def run_again(*upstream: Any, variables: Any = None) -> Any:
            gradients = _gradients_of_second_run(run, tensors, upstream, variables or ())
            from_tensors = gradients[: len(tensors)]
            return (from_tensors, gradients[len(tensors) :]) if variables else from_tensors

        return made, run_again

    made = run_now(*(tf.convert_to_tensor(one) for one in (*trainable, *state, *inputs)))
    num_outputs = len(made) - len(places)
    return BlockResult(list(made[:num_outputs]), dict(zip(places, made[num_outputs:], strict=True)))


def can_repeat(layer: Any) -> bool:
    """Returns whether `layer` is no embedding: its sparse gradient would become a dense one."""
    return type(layer).__name__ != "Embedding"


def _gradients_of_second_run(
    run: Any, tensors: Sequence[Any], upstream: Sequence[Any], variables: Sequence[Any]
) -> list[Any]:
    """Returns the gradients by `tensors` and `variables`, `None` where there are none.

    The second run waits for `upstream`. Else TensorFlow would see the same work twice, do it once
    and keep everything. XLA does not look at control dependencies: there it is a barrier, and on
    the CPU, where XLA removes barriers before it orders the work, a condition.
    """
    import tensorflow as tf
    from tensorflow.compiler.tf2xla.python import xla
    from tensorflow.python.ops import control_flow_util

    arrived = [None if one is None else tf.convert_to_tensor(one) for one in upstream]
    there = [one for one in arrived if one is not None]
    if tf.executing_eagerly() or not there:
        return _differentiate(run, [tf.identity(one) for one in tensors], arrived, variables)
    if not control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph()):
        with tf.control_dependencies(there):
            again = [tf.identity(one) for one in tensors]
        return _differentiate(run, again, arrived, variables)
    if tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("TPU"):
        again = xla.optimization_barrier(*tensors, *there)[: len(tensors)]
        return _differentiate(run, again, arrived, variables)
    return _differentiate_once_there(run, tensors, arrived, variables)


def _differentiate_once_there(
    run: Any, tensors: Sequence[Any], upstream: Sequence[Any], variables: Sequence[Any]
) -> list[Any]:
    """Returns the gradients from inside a condition that only a gradient that arrived can tell."""
    import tensorflow as tf

    sources = [*tensors, *variables]
    with_gradient: list[int] = []

    def again() -> list[Any]:
        copies = [tf.identity(one) for one in tensors]
        gradients = _differentiate(run, copies, upstream, variables)
        with_gradient[:] = [at for at, one in enumerate(gradients) if one is not None]
        return [gradients[at] for at in with_gradient]

    def never() -> list[Any]:
        return [tf.zeros_like(sources[at]) for at in with_gradient]

    moving = [one for one in upstream if one is not None and _has_gradient(one)]
    first = tf.reshape(moving[0], [-1])[0]
    found = iter(tf.cond(tf.equal(first, first) | tf.not_equal(first, first), again, never))
    return [next(found) if at in set(with_gradient) else None for at in range(len(sources))]


def _differentiate(
    run: Any, tensors: Sequence[Any], upstream: Sequence[Any], variables: Sequence[Any]
) -> list[Any]:
    """Runs again, recorded, and returns the gradients by `tensors` and `variables`."""
    import tensorflow as tf

    moving = [at for at, one in enumerate(tensors) if _has_gradient(one)]
    with tf.GradientTape() as tape:
        tape.watch([tensors[at] for at in moving])
        made = run(tensors)
    pairs = [
        (one, gradient)
        for one, gradient in zip(made, upstream, strict=True)
        if gradient is not None and _has_gradient(one)
    ]
    gradients = tape.gradient(
        [one for one, _ in pairs],
        [*(tensors[at] for at in moving), *variables],
        output_gradients=[gradient for _, gradient in pairs],
    )
    dense = [None if one is None else tf.convert_to_tensor(one) for one in gradients]
    by_place = dict(zip(moving, dense, strict=False))
    return [*(by_place.get(at) for at in range(len(tensors))), *dense[len(moving) :]]


def _has_gradient(tensor: Any) -> bool:
    return bool(tensor.dtype.is_floating or tensor.dtype.is_complex)
