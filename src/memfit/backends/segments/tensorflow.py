"""TensorFlow: two `tf.while_loop`s, one forward and one inside a custom gradient.

The size of a micro-batch is a variable, so that another size needs no new trace.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

# There is no public way to stop recording on tapes that others opened, nor to ask what they watch.
from tensorflow.python.eager import record

from memfit.backends.micro_batches import MicroBatches
from memfit.backends.segments import Given, Runner, Segment, SegmentResult
from memfit.errors import UsageError


def make_runner(model: Any, micro_batches: MicroBatches) -> Runner:
    """Returns what runs a segment in micro-batches, in a graph and eagerly."""
    if model.jit_compile:
        raise UsageError(
            f"The model {model.name!r} is compiled with jit_compile=True, where XLA needs "
            'micro-batches of a fixed size. batchnorm="exact" needs jit_compile=False on '
            "TensorFlow. Set it in compile(), also on a GPU, where the default is True."
        )
    size = tf.Variable(micro_batches.size, trainable=False)
    micro_batches.on_resize(size.assign)
    return lambda segment, given: _Run(segment, given, size.value()).run()


class _Run:
    """A segment and what it is given for one batch."""

    def __init__(self, segment: Segment, given: Given, size: Any) -> None:
        self._segment = segment
        self._given = [
            tf.convert_to_tensor(one) for one in (*given.trainable, *given.shared, *given.inputs)
        ]
        self._state = [tf.convert_to_tensor(one) for one in given.state]
        self._num_trainable = len(given.trainable)
        self._num_whole = len(given.trainable) + len(given.shared)
        self._size = size
        num_samples = tf.shape(self._given[-1])[0]
        self._num_micro_batches = -(-num_samples // size)
        self._watched = [
            place for place, one in enumerate(self._given) if record.should_record_backprop([one])
        ]

    def run(self) -> SegmentResult:
        with record.stop_recording():
            spec = self._find_spec()
        ends = len(spec.samples), len(spec.samples) + len(spec.micro_batches)

        @tf.custom_gradient  # type: ignore[untyped-decorator]  # TensorFlow has no types
        def run_now(*_: Any) -> Any:
            with record.stop_recording():
                made, states = self._forward(spec)

            def run_again(*upstream: Any, variables: Any = None) -> Any:
                others = list(variables or ())
                gradients = self._backward(others, states, upstream[: ends[1]])
                from_given = gradients[: len(self._watched)]
                return (from_given, gradients[len(self._watched) :]) if others else from_given

            return made, run_again

        made = list(run_now(*(self._given[place] for place in self._watched)))
        return SegmentResult(made[: ends[0]], made[ends[0] : ends[1]], made[ends[1] :])

    def _find_spec(self) -> SegmentResult:
        """Returns a micro-batch of which only types and shapes count."""
        if tf.executing_eagerly():
            return self._run_micro_batch(self._cut(0), self._state)
        with tf.__internal__.FuncGraph("memfit_spec").as_default():
            return self._run_micro_batch(self._cut(0), self._state)

    def _forward(self, spec: SegmentResult) -> tuple[list[Any], list[Any]]:
        """Returns all that was made, and the state that each micro-batch began with."""
        rows = [*spec.samples, *spec.micro_batches]

        def run_at(index: Any, *carry: Any) -> Any:
            state = list(carry[: len(self._state)])
            arrays = carry[len(self._state) :]
            made = self._run_micro_batch(self._cut(index), state)
            new = [*made.samples, *made.micro_batches, *state]
            written = [array.write(index, one) for array, one in zip(arrays, new, strict=True)]
            return (index + 1, *made.state, *written)

        arrays = [self._make_array(one.dtype, one.shape[1:], rows=True) for one in rows]
        arrays += [self._make_array(one.dtype, one.shape) for one in self._state]
        _, *left = self._loop(run_at, [*self._state, *arrays])
        state, arrays = left[: len(self._state)], left[len(self._state) :]
        whole = [_join(array, one.shape[1:]) for array, one in zip(arrays, rows, strict=False)]
        return [*whole, *state], [array.stack() for array in arrays[len(rows) :]]

    def _backward(
        self, variables: Sequence[Any], states: Sequence[Any], upstream: Sequence[Any]
    ) -> list[Any]:
        """Returns the gradients of what is watched and of `variables`, `None` if there is none."""
        summed = [place for place in self._watched if place < self._num_whole]
        joined = [place for place in self._watched if place >= self._num_whole]
        zeros = [tf.zeros_like(self._given[place]) for place in summed]
        zeros += [tf.zeros_like(one) for one in variables]
        has_gradient = [False] * (len(summed) + len(joined) + len(variables))

        def run_at(index: Any, *carry: Any) -> Any:
            cut = self._cut(index)
            sources = [cut[place] for place in (*summed, *joined)]
            with tf.GradientTape() as tape:
                tape.watch(sources)
                made = self._run_micro_batch(cut, [one[index] for one in states])
            targets, arrived = self._pair(made, upstream, index)
            found = tape.gradient(targets, [*sources, *variables], output_gradients=arrived)
            for place, one in enumerate(found):
                has_gradient[place] = has_gradient[place] or one is not None
            dense = [
                tf.zeros_like(source) if one is None else tf.convert_to_tensor(one)
                for source, one in zip([*sources, *variables], found, strict=True)
            ]
            for_rows = dense[len(summed) : len(summed) + len(joined)]
            for_sums = [*dense[: len(summed)], *dense[len(summed) + len(joined) :]]
            added = [one + more for one, more in zip(carry, for_sums, strict=False)]
            arrays = carry[len(zeros) :]
            written = [array.write(index, one) for array, one in zip(arrays, for_rows, strict=True)]
            return (index + 1, *added, *written)

        shapes = [self._given[place].shape[1:] for place in joined]
        arrays = [
            self._make_array(self._given[place].dtype, shape, rows=True)
            for place, shape in zip(joined, shapes, strict=True)
        ]
        _, *left = self._loop(run_at, [*zeros, *arrays])
        whole = [
            _join(array, shape) for array, shape in zip(left[len(zeros) :], shapes, strict=True)
        ]
        gradients = [*left[: len(summed)], *whole, *left[len(summed) : len(zeros)]]
        return [one if has else None for one, has in zip(gradients, has_gradient, strict=True)]

    def _pair(
        self, made: SegmentResult, upstream: Sequence[Any], index: Any
    ) -> tuple[list[Any], list[Any]]:
        """Returns what a micro-batch made that gradients arrived for, and its part of those."""
        begin = index * self._size
        parts = [
            one if one is None else one[begin : begin + self._size]
            for one in upstream[: len(made.samples)]
        ]
        parts += [
            one if one is None else one[index : index + 1] for one in upstream[len(made.samples) :]
        ]
        pairs = [
            (one, part)
            for one, part in zip([*made.samples, *made.micro_batches], parts, strict=True)
            if part is not None and one.dtype.is_floating
        ]
        return [one for one, _ in pairs], [part for _, part in pairs]

    def _run_micro_batch(self, cut: Sequence[Any], state: Sequence[Any]) -> SegmentResult:
        trainable, shared = cut[: self._num_trainable], cut[self._num_trainable : self._num_whole]
        made = self._segment(trainable, shared, state, cut[self._num_whole :])
        return SegmentResult(
            _convert(made.samples), _convert(made.micro_batches), _convert(made.state)
        )

    def _cut(self, index: Any) -> list[Any]:
        """Returns what is given, what holds samples cut to one micro-batch."""
        begin = index * self._size
        # Copies, so that a tape can tell them from what is outside of the loop.
        whole = [tf.identity(one) for one in self._given[: self._num_whole]]
        return [
            *whole,
            *(one[begin : begin + self._size] for one in self._given[self._num_whole :]),
        ]

    def _loop(self, run_at: Callable[..., Any], carry: Sequence[Any]) -> Any:
        """Runs the micro-batches in order: side by side they would save nothing."""
        return tf.while_loop(
            lambda index, *_: index < self._num_micro_batches,
            run_at,
            [tf.constant(0), *carry],
            parallel_iterations=1,
        )

    def _make_array(self, dtype: Any, shape: Any, *, rows: bool = False) -> Any:
        element = tf.TensorShape([None]).concatenate(shape) if rows else shape
        return tf.TensorArray(
            dtype, size=self._num_micro_batches, infer_shape=False, element_shape=element
        )


def _join(array: Any, shape: Any) -> Any:
    whole = array.concat()
    whole.set_shape(tf.TensorShape([None]).concatenate(shape))
    return whole


def _convert(tensors: Sequence[Any]) -> list[Any]:
    return [tf.convert_to_tensor(one) for one in tensors]
