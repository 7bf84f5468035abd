"""A Keras graph as nodes to plan with, and as parts to run."""

from collections.abc import Sequence
from typing import Any

from memfit.backends import load
from memfit.fitting.graph.blocks import Cut, GraphNode, Output
from memfit.fitting.graph.choose_blocks import Choice
from memfit.fitting.graph.layer_cost import estimate_work, tensor_bytes
from memfit.fitting.graph.pure_part import GraphPart


def read_graph_nodes(graph: Any, nodes: Sequence[Any], batch_size: int) -> list[GraphNode]:
    """Returns the calls of layers with their sizes, and who reads their outputs last."""
    last_reader = {id(one): at for at, node in enumerate(nodes) for one in node.input_tensors}
    last_reader |= {id(one): len(nodes) for one in graph.outputs}
    graph_nodes = []
    for place, node in enumerate(nodes):
        work = estimate_work(node, batch_size)
        outputs = [
            Output(tensor_bytes(one, batch_size), last_reader.get(id(one), place))
            for one in node.outputs
        ]
        graph_nodes.append(
            GraphNode(
                node.operation.name,
                work.kept_bytes,
                tuple(outputs),
                work.operations,
                can_repeat=_can_repeat(node),
            )
        )
    return graph_nodes


def _can_repeat(node: Any) -> bool:
    """Returns whether a call can run again; sparse and ragged tensors cannot be handed over."""
    tensors = (*node.input_tensors, *node.outputs)
    is_special = any(
        getattr(one, "sparse", False) or getattr(one, "ragged", False) for one in tensors
    )
    return not is_special and load("recompute").can_repeat(node.operation)


def split_graph(
    graph: Any, nodes: Sequence[Any], cuts: Sequence[Cut], choice: Choice
) -> list[tuple[GraphPart, bool]]:
    """Returns the parts of the graph in order, each with whether it is recomputed."""
    kept = {id(one) for one in graph.outputs}
    parts: list[tuple[GraphPart, bool]] = []
    for place, cut in reversed(list(enumerate(cuts))):
        inside = tuple(nodes[cut.first : cut.end])
        made = {id(one): one for node in inside for one in node.outputs}
        read = {id(one): one for node in inside for one in node.input_tensors}
        outputs = tuple(one for key, one in made.items() if key in kept)
        inputs = tuple(one for key, one in read.items() if key not in made)
        parts.append((GraphPart(inside, inputs, outputs), place in choice.chosen))
        kept |= set(read)
    return parts[::-1]
