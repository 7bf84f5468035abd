"""tf.data: what the stages of running pipelines hold, and what they will hold when full."""

import sys
import weakref
from collections.abc import Iterator
from typing import Any

from memfit.backends.events import DataStage, Observer
from memfit.backends.events.wrapping import tell_after

# Names of stages in the model that TensorFlow keeps of each iterator, by how they begin.
_STAGES = {"Shuffle": "shuffle", "MemoryCacheImpl": "cache", "Prefetch": "prefetch"}
_LEAST_LOADED_BYTES = 16_000_000
# Weakly: an iterator that the script drops must go.
_iterators: "weakref.WeakSet[Any]" = weakref.WeakSet()
_graphs: "weakref.WeakSet[Any]" = weakref.WeakSet()
_cardinalities: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()


def watch(observer: Observer) -> None:
    """Tells of datasets and iterators that the script makes."""
    modules = sys.modules
    dataset_class = modules["tensorflow.python.data.ops.dataset_ops"].DatasetV2
    iterator_class = modules["tensorflow.python.data.ops.iterator_ops"].OwnedIterator
    slices_class = _slices_class()

    def note_iterator(iterator: Any) -> None:
        _iterators.add(iterator)
        observer.made("iterator", iterator)

    def note_dataset(dataset: Any) -> None:
        observer.made("dataset", dataset)
        _note_graph()
        if type(dataset) is slices_class:
            size_bytes = sum(map(_tensor_bytes, dataset._tensors))
            if size_bytes >= _LEAST_LOADED_BYTES:
                observer.loaded("from_tensor_slices", size_bytes, size_bytes)

    tell_after(dataset_class, "__init__", note_dataset)
    tell_after(iterator_class, "__init__", note_iterator)


def _note_graph() -> None:
    """Each thread has a default graph of its own, seen from that thread only."""
    ops: Any = sys.modules["tensorflow.python.framework.ops"]
    graph = ops._default_graph_stack._global_default_graph
    if graph is not None:
        _graphs.add(graph)


def count_python_functions() -> int:
    """Returns how many Python functions default graphs keep: of generators, of `PyDataset`s."""
    return sum(len(getattr(one, "_py_funcs_used_in_graph", ())) for one in list(_graphs))


def read_stages() -> list[DataStage]:
    """Returns the stages that keep elements, of all iterators that are alive."""
    return [stage for iterator in list(_iterators) for stage in _stages_of(iterator)]


def _stages_of(iterator: Any) -> Iterator[DataStage]:
    from tensorflow.python.data.experimental.ops import iterator_model_ops

    if getattr(iterator, "_dataset", None) is None:
        return
    nodes = _in_order(iterator_model_ops.get_model_proto(iterator))
    makers: dict[str, list[Any]] = {kind: [] for kind in _STAGES.values()}
    for dataset in _upstream(iterator._dataset):
        kind = _kind_of_dataset(type(dataset).__name__)
        if kind is not None:
            makers[kind].append(dataset)
    for node in nodes:
        kind = next((kind for name, kind in _STAGES.items() if node.name.startswith(name)), None)
        if kind is not None and makers[kind]:
            yield _stage(kind, makers[kind].pop(0), node)


def _stage(kind: str, dataset: Any, node: Any) -> DataStage:
    inputs = list(_upstream(dataset))[1:]
    length = _buffer_size(dataset) if kind != "cache" else None
    source_length = _cardinality(inputs[0]) if inputs else None
    elements = min((one for one in (length, source_length) if one is not None), default=None)
    is_endless = any("Repeat" in type(one).__name__ for one in inputs) and kind == "cache"
    full_bytes = None
    if elements is not None and node.buffered_elements:
        full_bytes = round(node.buffered_bytes / node.buffered_elements * elements)
    return DataStage(
        kind=kind,
        maker=dataset,
        held_bytes=node.buffered_bytes,
        full_bytes=full_bytes,
        length=length,
        of_batches=any("Batch" in type(one).__name__ for one in inputs),
        after_repeat=is_endless,
    )


def _in_order(model: Any) -> list[Any]:
    """The stages of a pipeline from its end to its sources."""
    pending, ordered = [model.output] if model.output else [1], []
    seen: set[int] = set()
    while pending:
        at = pending.pop(0)
        if at in seen or at not in model.nodes:
            continue
        seen.add(at)
        ordered.append(model.nodes[at])
        pending = [*model.nodes[at].inputs, *pending]
    return ordered


def _upstream(dataset: Any) -> Iterator[Any]:
    """A dataset and all that it reads from, the nearest first."""
    pending = [dataset]
    while pending:
        one = pending.pop(0)
        yield one
        pending = [*one._inputs(), *pending]


def _kind_of_dataset(name: str) -> str | None:
    return next((kind for kind in ("shuffle", "cache", "prefetch") if kind in name.lower()), None)


def _buffer_size(dataset: Any) -> int | None:
    size = int(getattr(dataset, "_buffer_size", -1))
    return size if size > 0 else None  # below: chosen by TensorFlow as it goes


def _cardinality(dataset: Any) -> int | None:
    if dataset not in _cardinalities:
        _cardinalities[dataset] = int(dataset.cardinality())
    number = _cardinalities[dataset]
    return number if number >= 0 else None  # below: endless or not known


def _tensor_bytes(tensor: Any) -> int:
    return (tensor.shape.num_elements() or 0) * int(tensor.dtype.size)


def _slices_class() -> Any:
    module = sys.modules.get("tensorflow.python.data.ops.from_tensor_slices_op")
    return getattr(module, "_TensorSliceDataset", None)
