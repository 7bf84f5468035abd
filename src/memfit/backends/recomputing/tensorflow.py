"""TensorFlow: a custom gradient that runs the block again.

`tf.recompute_grad` takes neither masks nor state, and gives zeros where there is no gradient.
"""

from collections.abc import Sequence
from typing import Any

from memfit.backends.recomputing import BlockResult, PureBlock


def run_recomputed(
    block: PureBlock, trainable: Sequence[Any], state: Sequence[Any], inputs: Sequence[Any]
) -> BlockResult:
    """Runs `block` unrecorded; the gradient runs it again, recorded, once it is asked for."""
    import tensorflow as tf

    # There is no public way to stop recording on tapes that others opened.
    from tensorflow.python.eager import record

    num_trainable, num_state = len(trainable), len(state)
    places: list[int] = []  # of the state that changes, told by the run

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
    """Returns the gradients by `tensors` and `variables`, `None` where there are none."""
    import tensorflow as tf

    arrived = [tf.convert_to_tensor(one) for one in upstream if one is not None]
    again = _held_back(tensors, arrived)
    with tf.GradientTape() as tape:
        watched = [one for one in again if one.dtype.is_floating or one.dtype.is_complex]
        tape.watch(watched)
        made = run(again)
    pairs = [
        (one, gradient)
        for one, gradient in zip(made, upstream, strict=True)
        if gradient is not None and (one.dtype.is_floating or one.dtype.is_complex)
    ]
    gradients = tape.gradient(
        [one for one, _ in pairs],
        [*watched, *variables],
        output_gradients=[gradient for _, gradient in pairs],
    )
    dense = [None if one is None else tf.convert_to_tensor(one) for one in gradients]
    by_tensor = {one.ref(): gradient for one, gradient in zip(watched, dense, strict=False)}
    return [*(by_tensor.get(one.ref()) for one in again), *dense[len(watched) :]]


def _held_back(tensors: Sequence[Any], upstream: Sequence[Any]) -> list[Any]:
    """Returns `tensors`, but not before `upstream` is there.

    Else TensorFlow would see the same work twice, do it once and keep everything. XLA does not
    look at control dependencies, so there it is a barrier.
    """
    import tensorflow as tf
    from tensorflow.python.ops import control_flow_util

    if tf.executing_eagerly():
        return [tf.identity(one) for one in tensors]
    if control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph()):
        from tensorflow.compiler.tf2xla.python import xla

        together = xla.optimization_barrier(*tensors, *upstream)
        return list(together[: len(tensors)])
    with tf.control_dependencies(upstream):
        return [tf.identity(one) for one in tensors]
