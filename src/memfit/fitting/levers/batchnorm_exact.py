"""Lever: batches in micro-batches between BatchNormalization layers, which see the whole batch.

The model is cut into segments at those layers. A segment runs for all micro-batches, one after
another, then the statistics of the batch are known and the next one begins. The backward pass goes
the same way back and computes each micro-batch of a segment again. So only what crosses from one
segment to another is kept for the whole batch: the input of each BatchNormalization, and shortcuts.
"""

from typing import Any

from memfit.backends import load
from memfit.backends.micro_batches import MicroBatches
from memfit.errors import UsageError
from memfit.fitting.graph.batchnorm import find_batchnorm
from memfit.fitting.graph.segments import INSTEAD, cut_graph
from memfit.fitting.levers.change import Change
from memfit.keras_private.graph import inner_graph, is_training_call, runs_its_graph


def normalise_exactly(model: Any, micro_batches: MicroBatches) -> Change:
    """Makes the model train in micro-batches, its BatchNormalization layers on the whole batch.

    Raises:
        UsageError: The model has no graph that can be cut at those layers, and why.
    """
    graph = _graph_to_cut(model)
    runner = load("segments").make_runner(model, micro_batches)
    original = model.call
    layers = find_batchnorm(model)
    segments = cut_graph(graph, layers)

    def call(inputs: Any, training: Any = None, mask: Any = None, **kwargs: Any) -> Any:
        nonlocal layers, segments
        if not is_training_call(training, inputs):
            return original(inputs, training=training, mask=mask, **kwargs)
        if (now := find_batchnorm(model)) != layers:  # some were frozen, or thawed
            layers, segments = now, cut_graph(graph, now)
        return segments.run(inputs, mask, {**kwargs, "training": training}, runner)

    def undo() -> None:
        del model.call

    model.call = call
    text = (
        f"the {len(layers)} BatchNormalization layers see the whole batch: one more forward "
        "pass (more time if micro-batches are small), and the input of each BatchNormalization of "
        "the whole batch stays in memory"
    )
    return Change(text, undo)


def _graph_to_cut(model: Any) -> Any:
    """Returns the Functional graph that the model runs through."""
    import keras

    graph = inner_graph(model)
    if graph is None and isinstance(model, keras.Sequential):
        raise UsageError(
            f"The Sequential model {model.name!r} is not built, so there is no graph to cut. "
            "Give it a keras.Input first, or call model.build(input_shape)."
        )
    if graph is None or not runs_its_graph(model):
        raise UsageError(
            f"The model {model.name!r} runs a call() written in {type(model).__name__}, which has "
            f"no graph to cut at its BatchNormalization layers. {INSTEAD}"
        )
    if "call" in vars(model):
        raise UsageError(
            f"The model {model.name!r} has a replaced call(), perhaps by an earlier "
            'recompute(). Undo that change first: batchnorm="exact" recomputes everything itself.'
        )
    return graph
