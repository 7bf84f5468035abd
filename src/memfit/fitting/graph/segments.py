"""A Keras graph in segments: what runs between two looks at the whole batch."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memfit.backends.recompute import BlockResult
from memfit.backends.segments import Given, Runner, SegmentResult
from memfit.errors import UsageError
from memfit.fitting.graph.batch_moments import Normalisation
from memfit.fitting.graph.batchnorm import check_known
from memfit.fitting.graph.flatten import FlatGraph, flatten_graph
from memfit.fitting.graph.pure_part import GraphPart, PureRun
from memfit.fitting.graph.segment_order import Call, assign_segments
from memfit.keras_private.graph import Caller, run_functional, runs_its_graph
from memfit.keras_private.layers import all_layers, own_trained_variables, uncast

INSTEAD = 'Give batchnorm="micro", which normalises each micro-batch by itself.'


@dataclass(frozen=True, eq=False, slots=True)
class SegmentedGraph:
    """A model cut at its BatchNormalization layers.

    Attributes:
        graph: The Functional model.
        segments: Its segments, in order.
        outputs: The symbolic tensors that it gives, by the names that segments know.
    """

    graph: Any
    segments: tuple["_Segment", ...]
    outputs: tuple[Any, ...]

    def run(self, inputs: Any, mask: Any, context: dict[str, Any], runner: Runner) -> Any:
        """Does what Functional's `call` does, segment by segment."""

        def run_segments(tensors: dict[int, Any], caller: Caller) -> None:
            for segment in self.segments:
                segment.run(tensors, caller, runner)

        return run_functional(
            self.graph, inputs, mask, run_segments, context=context, outputs=self.outputs
        )


@dataclass(frozen=True, eq=False, slots=True)
class _Segment:
    """What runs between two looks at the whole batch.

    Attributes:
        part: The calls. Of what it reads, moments of the batch come first; of what it makes,
            moments of the micro-batches come last.
        num_shared: How many of its inputs are moments.
        num_moments: How many of its outputs are moments.
        ending: The normalisations whose input is complete after it.
        beginning: Those whose output it makes.
    """

    part: GraphPart
    num_shared: int
    num_moments: int
    ending: tuple[Normalisation, ...]
    beginning: tuple[Normalisation, ...]

    def run(self, tensors: dict[int, Any], caller: Caller, runner: Runner) -> None:
        """Runs all micro-batches; reads and adds tensors by the identity of symbolic ones."""
        trainable, state = _variables(self.part)
        pure = PureRun(self.part, trainable, state, caller, tensors)
        with uncast():
            given = Given(
                [one.value for one in trainable],
                pure.given[: self.num_shared],
                [one.value for one in state],
                pure.given[self.num_shared :],
            )
        changed: set[int] = set()
        moving = {
            id(one) for begun in self.beginning for one in begun.layer.non_trainable_variables
        }
        moved = {place for place, one in enumerate(state) if id(one) in moving}

        def run_micro_batch(trainable: Any, shared: Any, state: Any, inputs: Any) -> SegmentResult:
            result = pure.run(trainable, state, [*shared, *inputs])
            # Every micro-batch moves statistics, and all begin with the same; they move once,
            # below.
            updates = {place: one for place, one in result.updates.items() if place not in moved}
            changed.update(updates)
            after = [updates.get(place, value) for place, value in enumerate(state)]
            return self._sort(result.outputs, pure.num_masks, after, inputs)

        made = runner(run_micro_batch, given)
        pure.take_over(self._put_back(made, pure.num_masks, changed), tensors)
        for one in self.beginning:
            one.move_statistics(tensors)
        for one in self.ending:
            one.join(tensors)

    def _sort(
        self, outputs: Sequence[Any], num_masks: int, state: list[Any], inputs: Sequence[Any]
    ) -> SegmentResult:
        """Returns what a run made: tensors and masks, then one row each for moments and losses."""
        from keras import ops

        num_tensors = len(self.part.outputs) - self.num_moments
        rest = outputs[num_tensors:]
        moments, masks, losses = (
            rest[: self.num_moments],
            rest[self.num_moments : self.num_moments + num_masks],
            rest[self.num_moments + num_masks :],
        )
        num_samples = ops.reshape(ops.cast(ops.shape(inputs[0])[0], "float32"), (1,))
        return SegmentResult(
            [*outputs[:num_tensors], *masks],
            [num_samples, *moments, *(ops.expand_dims(one, 0) for one in losses)],
            state,
        )

    def _put_back(self, made: SegmentResult, num_masks: int, changed: set[int]) -> BlockResult:
        """Returns what one run of the batch would have made, moments a row for each micro-batch."""
        num_tensors = len(made.samples) - num_masks
        num_samples, *rest = made.micro_batches
        losses = [_mean(one, num_samples) for one in rest[self.num_moments :]]
        return BlockResult(
            [
                *made.samples[:num_tensors],
                *rest[: self.num_moments],
                *made.samples[num_tensors:],
                *losses,
            ],
            {place: made.state[place] for place in changed},
        )


def _mean(values: Any, num_samples: Any) -> Any:
    """Returns the mean of a loss over the micro-batches, each by its samples, as Keras means it."""
    from keras import ops

    share = ops.cast(num_samples / ops.sum(num_samples), values.dtype)
    return ops.tensordot(share, values, axes=1)


def _variables(part: GraphPart) -> tuple[list[Any], list[Any]]:
    """Returns the trainable variables, and those that a run may change."""
    trainable, others = part.variables()
    frozen = {
        id(one)
        for layer in part.layers
        for inner in all_layers(layer)
        for one in own_trained_variables(inner)
    }
    return trainable, [one for one in others if id(one) not in frozen]


def cut_graph(graph: Any, layers: Sequence[Any]) -> SegmentedGraph:
    """Returns the graph cut at these BatchNormalization layers.

    Raises:
        UsageError: It cannot be cut there, and why.
    """
    check_known(layers)
    wanted = {id(one) for one in layers}
    flat = flatten_graph(graph, lambda model: _is_opened(model, wanted))
    _check_reached(flat, wanted)
    _check_samples([*graph.inputs, *(one for call in flat.calls for one in call.outputs)])
    calls = [
        Call(
            tuple(id(one) for one in call.input_tensors),
            tuple(id(one) for one in call.outputs),
            needs_batch=id(call.operation) in wanted,
        )
        for call in flat.calls
    ]
    places = assign_segments(calls)
    insides: list[list[Any]] = [[] for _ in range(max(places) + 1)]
    endings: list[list[Normalisation]] = [[] for _ in insides]
    beginnings: list[list[Normalisation]] = [[] for _ in insides]
    made_in: dict[int, int] = {}
    for call, place in zip(flat.calls, places, strict=True):
        made_in |= {id(one): place for one in call.outputs}
        if id(call.operation) not in wanted:
            insides[place].append(call)
            continue
        one = Normalisation(call)
        insides[place].append(one.second_half())
        beginnings[place].append(one)
        begin = max(made_in.get(id(symbol), 0) for symbol in call.input_tensors)
        endings[begin].append(one)
    segments = _make_segments(flat, insides, endings, beginnings)
    return SegmentedGraph(graph, tuple(segments), flat.outputs)


def _make_segments(
    flat: FlatGraph,
    insides: Sequence[list[Any]],
    endings: Sequence[list[Normalisation]],
    beginnings: Sequence[list[Normalisation]],
) -> list[_Segment]:
    kept = {id(one) for one in flat.outputs}
    segments: list[_Segment] = []
    for inside, ending, beginning in reversed(list(zip(insides, endings, beginnings, strict=True))):
        nodes = (*inside, *(one.first_half() for one in ending))
        made = {id(one): one for call in inside for one in call.outputs}
        read = {id(one): one for call in nodes for one in call.input_tensors}
        outputs = [one for key, one in made.items() if key in kept]
        inputs = [one for key, one in read.items() if key not in made]
        shared = [one for one in inputs if not hasattr(one, "shape")]
        tensors = [one for one in inputs if hasattr(one, "shape")]
        moments = list(itertools.chain.from_iterable(one.of_micro_batches for one in ending))
        part = GraphPart(nodes, (*shared, *tensors), (*outputs, *moments))
        segments.append(_Segment(part, len(shared), len(moments), tuple(ending), tuple(beginning)))
        kept |= set(read)
    return segments[::-1]


def _is_opened(model: Any, wanted: set[int]) -> bool:
    """Returns whether an inner model holds such a layer and does nothing but run its graph."""
    holds = any(id(one) in wanted for one in all_layers(model))
    return holds and runs_its_graph(model)


def _check_reached(flat: FlatGraph, wanted: set[int]) -> None:
    for call in flat.calls:
        operation = call.operation
        hidden = [
            one for one in all_layers(operation) if one is not operation and id(one) in wanted
        ]
        if hidden:
            raise UsageError(
                f"The layer {operation.name!r} ({type(operation).__name__}) calls the "
                f"BatchNormalization {hidden[0].name!r} inside, where the model's graph cannot be "
                f"cut. {INSTEAD}"
            )


def _check_samples(symbols: Sequence[Any]) -> None:
    for one in symbols:
        is_special = getattr(one, "sparse", False) or getattr(one, "ragged", False)
        if is_special or not one.shape or one.shape[0] is not None:
            kind = "sparse or ragged" if is_special else f"of shape {tuple(one.shape)}"
            raise UsageError(
                f"The tensor {one.name!r} is {kind}, so it cannot be cut: micro-batches need dense "
                f"tensors whose first axis is the samples. {INSTEAD}"
            )
