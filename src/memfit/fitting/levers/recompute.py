"""Lever: activations are computed again in the backward pass instead of being kept."""

import functools
from collections.abc import Sequence
from typing import Any

from memfit.arguments import check_keras_model, check_whole_number
from memfit.errors import UsageError
from memfit.fitting.graph.blocks import Cut, cut_into_blocks
from memfit.fitting.graph.choose_blocks import Choice, choose_all, choose_blocks, peak_bytes
from memfit.fitting.graph.parts import read_graph_nodes, split_graph
from memfit.fitting.graph.pure_part import GraphPart
from memfit.fitting.levers.change import Change, forget_functions
from memfit.fitting.levers.first_batch_proof import FirstBatchProof, HeldLever
from memfit.fitting.proof.gate import check_allow
from memfit.fitting.proof.proof import Lever
from memfit.keras_private.graph import (
    Caller,
    inner_graph,
    is_training_call,
    ordered_nodes,
    run_functional,
    runs_its_graph,
)
from memfit.units import format_size

# A step computes forward once and backward about twice as much.
_STEP_IN_FORWARDS = 3


def recompute(
    model: Any,
    bytes_to_save: int | None = None,
    *,
    batch_size: int = 32,
    allow: Sequence[str] = (),
) -> Change:
    """Saves activations in training by computing part of the forward pass twice.

    The model is cut into blocks. Of a block that is recomputed, only what others read of it is
    kept; the backward pass computes the rest again, with the same Dropout masks and without a
    second update of BatchNorm's statistics. Losses, gradients and weights stay the same.
    Prediction and evaluation are not touched.

    At the first batch of `fit`, before its update, a step with and one without are compared. Where
    they differ, the change is undone and a `UsageError` says in what.

    Args:
        model: A Functional or Sequential model that is built.
        bytes_to_save: How much lower the peak should be; the cheapest blocks for it are chosen.
            Defaults to all blocks that save something.
        batch_size: The batches that it trains on, to compute what is saved.
        allow: `("unverified",)` trains where it cannot be told whether the training is the same.

    Raises:
        UsageError: If the model has no graph to cut, or less can be saved than asked.

    Example:
    ```python
    change = memfit.recompute(model, batch_size=64)
    print(change)        # 3 of 4 blocks are recomputed in the backward pass; ...
    model.fit(x, y, batch_size=64)
    ```
    """
    check_allow(allow)
    install = functools.partial(install_recompute, model, bytes_to_save, batch_size=batch_size)
    with install() as tried:
        text = str(tried)
    describe = functools.partial(describe_recompute, model, bytes_to_save, batch_size=batch_size)
    held = HeldLever(model, FirstBatchProof(model, describe, allow), install)
    held.hold("train")
    held.install()  # the model may be a part of another, which is the one that trains
    return Change(text, held.undo)


def describe_recompute(
    model: Any, bytes_to_save: int | None = None, *, batch_size: int = 32
) -> Lever:
    """Returns recomputation as a proof sees it; batches stay whole."""

    def install(_size: int, _collects: bool) -> Change:
        return install_recompute(model, bytes_to_save, batch_size=batch_size)

    name = f"recompute {bytes_to_save} bytes at batch size {batch_size}"
    return Lever(install, cuts=False, name=name)


def install_recompute(
    model: Any, bytes_to_save: int | None = None, *, batch_size: int = 32
) -> Change:
    """Recomputes as `recompute` does, and proves nothing."""
    graph = _graph_to_cut(model)
    batch_size = check_whole_number("batch_size", batch_size)
    if bytes_to_save is not None:
        bytes_to_save = check_whole_number("bytes_to_save", bytes_to_save)
    nodes = ordered_nodes(graph)
    cuts = cut_into_blocks(read_graph_nodes(graph, nodes, batch_size))
    blocks = [cut.block for cut in cuts]
    choice = choose_all(blocks) if bytes_to_save is None else choose_blocks(blocks, bytes_to_save)
    if not choice.is_enough or choice.saved_bytes <= 0:
        raise UsageError(_too_little(model, choice, bytes_to_save))
    return _install(
        model, graph, split_graph(graph, nodes, cuts, choice), _tell(cuts, choice, batch_size)
    )


def _graph_to_cut(model: Any) -> Any:
    """Returns the Functional graph that `model` runs through.

    Raises:
        UsageError: If there is none, or something else than Keras's own `call` runs it.
    """
    import keras

    check_keras_model(model)
    if "call" in vars(model):
        raise UsageError(
            f"The model {model.name!r} has a replaced call(), perhaps by an earlier "
            "recompute(). Expected a model as it was built. Undo that change first."
        )
    graph = inner_graph(model)
    if graph is None and isinstance(model, keras.Sequential):
        raise UsageError(
            f"The Sequential model {model.name!r} is not built, so there is no graph to cut. "
            "Give it a keras.Input first, or call model.build(input_shape)."
        )
    if graph is None or not runs_its_graph(model):
        raise UsageError(
            f"The model {model.name!r} runs a call() written in {type(model).__name__}, which has "
            "no graph to cut. Expected a Functional or Sequential model. Build its parts as "
            "Functional models and give each to recompute(), or split batches instead."
        )
    return graph


def _install(model: Any, graph: Any, parts: Sequence[tuple[GraphPart, bool]], text: str) -> Change:
    """Sets a `call` on the model that runs the parts, and returns the way back."""
    original = model.call

    def call(inputs: Any, training: Any = None, mask: Any = None, **kwargs: Any) -> Any:
        if not is_training_call(training, inputs) or inner_graph(model) is not graph:
            return original(inputs, training=training, mask=mask, **kwargs)
        context = {**kwargs, "training": training}
        run_nodes = functools.partial(_run_parts, parts)
        return run_functional(graph, inputs, mask, run_nodes, context=context)

    def undo() -> None:
        del model.call
        forget_functions(model)

    model.call = call
    forget_functions(model)
    return Change(text, undo)


def _run_parts(
    parts: Sequence[tuple[GraphPart, bool]], tensors: dict[int, Any], caller: Caller
) -> None:
    for part, is_recomputed in parts:
        run = part.run_recomputed if is_recomputed else part.run
        run(tensors, caller)


def _tell(cuts: Sequence[Cut], choice: Choice, batch_size: int) -> str:
    blocks = [cut.block for cut in cuts]
    share = choice.cost / max(1, sum(block.cost for block in blocks))
    return (
        f"{len(choice.chosen)} of {len(blocks)} blocks are recomputed in the backward pass; "
        f"saves about {format_size(choice.saved_bytes)} of {format_size(peak_bytes(blocks))} "
        f"of activations at batch size {batch_size}; {share:.0%} of the forward pass is computed "
        f"twice, about {share / _STEP_IN_FORWARDS:.0%} more work a step"
    )


def _too_little(model: Any, choice: Choice, bytes_to_save: int | None) -> str:
    asked = "" if bytes_to_save is None else f", and {format_size(bytes_to_save)} were requested"
    return (
        f"Recomputation can save at most about {format_size(choice.saved_bytes)} of the "
        f"activations of {model.name!r}{asked}. Ask for less, or split batches instead."
    )
