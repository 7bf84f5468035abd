"""The graph of a Functional or Sequential model: its nodes, and how Keras runs through them."""

from collections.abc import Callable, Sequence
from typing import Any

from memfit.keras_private.layers import set_mask
from memfit.keras_private.names import relies_on

_FUNCTIONAL = "keras.src.models.functional.Functional"
_NODE = "keras.src.ops.node.Node"

# Takes a layer; gives a function that calls it, with the context of the model's call filled in.
Caller = Callable[[Any], Callable[..., Any]]


@relies_on("keras.src.models.sequential.Sequential._functional", f"{_FUNCTIONAL}._nodes_by_depth")
def inner_graph(layer: Any) -> Any | None:
    """Returns the graph of a Functional or built Sequential model; `None` for anything else.

    A built `Sequential` keeps a `Functional` in `_functional`; a `Functional` keeps its nodes in
    `_nodes_by_depth`.
    """
    graph = getattr(layer, "_functional", None) or layer
    return graph if hasattr(graph, "_nodes_by_depth") else None


@relies_on(
    f"{_FUNCTIONAL}._nodes_by_depth",
    f"{_NODE}.operation",
    f"{_NODE}.is_input",
    f"{_NODE}.arguments",
    f"{_NODE}.input_tensors",
    f"{_NODE}.outputs",
    "keras.src.ops.symbolic_arguments.SymbolicArguments.fill_in",
)
def ordered_nodes(graph: Any) -> list[Any]:
    """Returns the calls of layers in a graph in the order in which Keras runs them.

    The largest depth runs first. Callers read `operation`, `arguments`, `input_tensors` and
    `outputs` of a node.
    """
    by_depth = graph._nodes_by_depth
    nodes = [node for depth in sorted(by_depth, reverse=True) for node in by_depth[depth]]
    return [node for node in nodes if node.operation and not node.is_input]


@relies_on(
    f"{_FUNCTIONAL}._outputs_struct",
    "keras.src.models.functional.operation_fn",
    "keras.src.models.functional.unpack_singleton",
)
def run_functional(
    graph: Any,
    inputs: Any,
    mask: Any,
    run_nodes: Callable[[dict[int, Any], Caller], None],
    *,
    context: dict[str, Any],
    outputs: Sequence[Any] | None = None,
) -> Any:
    """Does what the `call` of a Functional model does, with another way to run its nodes.

    Keras standardizes the inputs, sets their masks, runs the nodes with the arguments that the
    call hands on to layers (`operation_fn`), and packs the outputs like `_outputs_struct`.

    Args:
        graph: The Functional model.
        inputs: What the model is called with.
        mask: The masks of the inputs.
        run_nodes: Takes the tensors by the `id` of their symbolic ones, and adds those it makes.
        context: The arguments of the call that are handed on, such as `training`.
        outputs: The symbolic tensors to return. Defaults to the model's own.
    """
    import keras
    from keras.src.models.functional import operation_fn, unpack_singleton

    given = standardize_inputs(graph, inputs)
    for tensor, its_mask in zip(given, keras.tree.flatten(mask), strict=False):
        if its_mask is not None:
            set_mask(tensor, its_mask)
    tensors = {id(symbol): one for symbol, one in zip(graph.inputs, given, strict=True)}
    run_nodes(tensors, lambda operation: operation_fn(operation, **context))
    results = [tensors[id(symbol)] for symbol in (graph.outputs if outputs is None else outputs)]
    return unpack_singleton(keras.tree.pack_sequence_as(graph._outputs_struct, results))


@relies_on(f"{_FUNCTIONAL}._standardize_inputs")
def standardize_inputs(graph: Any, inputs: Any) -> list[Any]:
    """Returns the inputs flat, converted to the dtypes and ranks that a Functional model wants."""
    given: list[Any] = graph._standardize_inputs(inputs)
    return given


@relies_on("keras.src.models.functional", "keras.src.models.sequential", "keras.src.models.model")
def runs_its_graph(model: Any) -> bool:
    """Returns whether a model has Keras's own `call`, which lies in `keras.src.models`."""
    return bool(type(model).call.__module__.startswith("keras.src.models."))


@relies_on("keras.src.backend.common.symbolic_scope.in_symbolic_scope")
def is_training_call(training: Any, inputs: Any) -> bool:
    """Returns whether this is a real call in training; a symbolic one only asks for shapes."""
    import keras
    from keras.src.backend.common.symbolic_scope import in_symbolic_scope

    return (
        isinstance(training, int)
        and bool(training)
        and not in_symbolic_scope()
        and not any(isinstance(one, keras.KerasTensor) for one in keras.tree.flatten(inputs))
    )


@relies_on("keras.src.backend.common.keras_tensor.KerasTensor._keras_history")
def find_maker(tensor: Any) -> tuple[Any, int]:
    """Returns which operation made a symbolic tensor, and in which of its calls.

    `_keras_history` also has the tensor's place among the outputs of that call.
    """
    operation, node_index, _ = tensor._keras_history
    return operation, node_index


@relies_on("keras.src.ops.operation.Operation._inbound_nodes", f"{_NODE}.input_tensors")
def inputs_of_call(operation: Any, node_index: int) -> Sequence[Any]:
    """Returns the symbolic tensors that one call of an operation reads."""
    inputs: Sequence[Any] = operation._inbound_nodes[node_index].input_tensors
    return inputs


@relies_on("keras.src.ops.operation.Operation._inbound_nodes", f"{_NODE}.output_tensors")
def last_outputs(layer: Any) -> Sequence[Any]:
    """Returns the symbolic outputs of a layer's last call; none if it was never called.

    A `Sequential` that grows layer by layer leaves older calls behind.
    """
    nodes = layer._inbound_nodes
    return nodes[-1].output_tensors if nodes else ()


@relies_on(
    "keras.src.layers.layer.Layer._call_context_args",
    "keras.src.layers.layer.Layer._flatten_layers",
)
class LayerStandIn:
    """Stands for a layer in a graph; what is called in its place is up to a subclass.

    `operation_fn` reads `_call_context_args`: which arguments of the model's call the layer takes.
    """

    def __init__(self, layer: Any) -> None:
        self.layer = layer
        self._call_context_args = layer._call_context_args

    @property
    def trainable_variables(self) -> Any:
        """Those of the layer."""
        return self.layer.trainable_variables

    @property
    def non_trainable_variables(self) -> Any:
        """Those of the layer."""
        return self.layer.non_trainable_variables

    def _flatten_layers(self) -> Any:
        return self.layer._flatten_layers()
