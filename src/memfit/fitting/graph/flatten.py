"""The graph of a Keras model without its inner models: the calls of layers that really happen."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memfit.keras_private.graph import inner_graph, ordered_nodes, standardize_inputs


@dataclass(frozen=True, eq=False, slots=True)
class FlatCall:
    """A call of a layer, in the shape of a node of a Keras graph.

    Attributes:
        operation: What is called.
        arguments: Has `fill_in`, which makes arguments of tensors.
        input_tensors: The symbolic tensors that it reads.
        outputs: The symbolic tensors that it makes.
    """

    operation: Any
    arguments: Any
    input_tensors: tuple[Any, ...]
    outputs: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class FlatGraph:
    """The calls of a model.

    Attributes:
        calls: In the order in which they run.
        outputs: The symbolic tensors that the model gives.
    """

    calls: tuple[FlatCall, ...]
    outputs: tuple[Any, ...]


def flatten_graph(graph: Any, is_opened: Callable[[Any], bool]) -> FlatGraph:
    """Returns the calls in a Functional graph, inner models replaced by theirs.

    Args:
        graph: A Functional model.
        is_opened: Tells of an inner model whether its calls are wanted; else it stays one call.
    """
    names: dict[int, Any] = {}
    calls = tuple(_flatten(graph, names, is_opened))
    return FlatGraph(calls, tuple(names.get(id(one), one) for one in graph.outputs))


def _flatten(
    graph: Any, names: dict[int, Any], is_opened: Callable[[Any], bool], *, is_inner: bool = False
) -> Iterator[FlatCall]:
    """Yields the calls; adds to `names` what a tensor of `graph` is called in the whole."""
    for node in ordered_nodes(graph):
        read = tuple(names.get(id(one), one) for one in node.input_tensors)
        arguments = _Renamed(node.arguments, dict(names))
        inner = inner_graph(node.operation)
        if inner is not None and is_opened(node.operation):
            entries = tuple(_make_symbol(one) for one in inner.inputs)
            yield FlatCall(_Entry(inner), arguments, read, entries)
            inside = {id(one): entry for one, entry in zip(inner.inputs, entries, strict=True)}
            yield from _flatten(inner, inside, is_opened, is_inner=True)
            for outer, one in zip(node.outputs, inner.outputs, strict=True):
                names[id(outer)] = inside[id(one)]
            continue
        if is_inner:  # an inner model may be called again, with other tensors
            names |= {id(one): _make_symbol(one) for one in node.outputs}
        made = tuple(names.get(id(one), one) for one in node.outputs)
        yield FlatCall(node.operation, arguments, read, made)


class _Renamed:
    """The arguments of a call, for tensors that go by other names."""

    def __init__(self, arguments: Any, names: Mapping[int, Any]) -> None:
        self._arguments = arguments
        self._names = names

    def fill_in(self, tensors: Mapping[int, Any]) -> Any:
        renamed = {key: tensors[id(one)] for key, one in self._names.items() if id(one) in tensors}
        return self._arguments.fill_in({**tensors, **renamed})


class _Entry:
    """What an inner model does before its first layer."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph

    def __call__(self, inputs: Any, **_: Any) -> Any:
        return standardize_inputs(self._graph, inputs)


def _make_symbol(symbol: Any) -> Any:
    import keras

    return keras.KerasTensor(symbol.shape, symbol.dtype)
