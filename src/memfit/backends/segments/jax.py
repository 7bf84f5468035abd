"""JAX: `jax.lax.scan` over the full micro-batches, then the rest; one more scan backward."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import CustomVJPPrimal, SymbolicZero

from memfit.backends.micro_batches import MicroBatches
from memfit.backends.segments import Given, Runner, Segment, SegmentResult
from memfit.backends.xla_order import has_gradient, run_once_there

_Tensors = Sequence[Any]


def make_runner(model: Any, micro_batches: MicroBatches) -> Runner:
    """Returns what runs a segment in micro-batches; another size is compiled again."""
    micro_batches.on_resize(lambda _: setattr(model, "train_function", None))
    return lambda segment, given: _Run(segment, given, micro_batches.size).run()


class _Run:
    """A segment and what it is given for one batch."""

    def __init__(self, segment: Segment, given: Given, size: int) -> None:
        self._segment = segment
        self._given = given
        self._num_trainable = len(given.trainable)
        self._size = size
        num_samples = given.inputs[0].shape[0]
        self._num_whole, self._num_rest = divmod(num_samples, size)
        self._num_rows = 0  # of what is made, those with a row for each sample; told by the run
        # Which tensors need a gradient, told by JAX: those that are one for all micro-batches,
        # inputs.
        self._watched: tuple[list[int], list[int]] = ([], [])

    def run(self) -> SegmentResult:
        given = self._given
        run = jax.custom_vjp(lambda *given: self._forward(*given)[0])
        run.defvjp(self._run_first, self._run_again, symbolic_zeros=True)
        whole = [*given.trainable, *given.shared]
        made, state = run(whole, list(given.inputs), list(given.state))
        return SegmentResult(made[: self._num_rows], made[self._num_rows :], state)

    def _run_first(self, *given: Any) -> Any:
        """Runs forward; what goes in and the states of the micro-batches are kept."""
        whole, inputs, state = jax.tree.map(lambda one: one.value, given, is_leaf=_is_primal)
        self._watched = (_find_watched(given[0]), _find_watched(given[1]))
        result, states = self._forward(whole, inputs, state)
        return result, (whole, inputs, states)

    def _forward(self, whole: _Tensors, inputs: _Tensors, state: _Tensors) -> Any:
        """Returns what all micro-batches make, the last state, and the state each began with."""

        def run_at(state: Any, index: Any) -> Any:
            made, after = self._run_micro_batch(whole, self._cut(inputs, index), state)
            return after, (made, state)

        parts, states, last = [], None, list(state)
        if self._num_whole:
            last, (stacked, states) = jax.lax.scan(run_at, last, jnp.arange(self._num_whole))
            parts.append([_unstack(one) for one in stacked])
        before_rest = last
        if self._num_rest:
            # XLA would else run the rest beside the others.
            made, last = run_once_there(
                lambda state: self._run_micro_batch(whole, self._cut_rest(inputs), state),
                parts,
                last,
            )
            parts.append(made)
        made = [_join(rows) for rows in zip(*parts, strict=True)]
        return (made, last), (states, before_rest)

    def _run_again(self, kept: Any, upstream: Any) -> Any:
        """Returns the gradients of what went in, `None` where none is needed."""
        whole, inputs, (states, before_rest) = kept
        arrived = {
            place: one
            for place, one in enumerate(upstream[0])
            if not isinstance(one, SymbolicZero) and has_gradient(one)
        }
        if not arrived or not any(self._watched):
            return [None] * len(whole), [None] * len(inputs), [None] * len(before_rest)

        def run_at(sums: Any, at: Any) -> Any:
            index, state = at
            cut = self._cut(inputs, index)
            own = {
                place: _slice(one, index, self._size if place < self._num_rows else 1)
                for place, one in arrived.items()
            }
            by_whole, by_inputs = self._differentiate(whole, cut, state, own)
            return [one + more for one, more in zip(sums, by_whole, strict=True)], by_inputs

        sums = [jnp.zeros_like(whole[place]) for place in self._watched[0]]
        parts = []
        if self._num_whole:
            sums, stacked = jax.lax.scan(run_at, sums, (jnp.arange(self._num_whole), states))
            parts.append([_unstack(one) for one in stacked])
        if self._num_rest:
            begin = self._num_whole * self._size
            own = {
                place: one[begin if place < self._num_rows else self._num_whole :]
                for place, one in arrived.items()
            }
            # XLA would else see the work of the forward pass again, do it once and keep everything.
            by_whole, by_inputs = run_once_there(
                self._differentiate, own, whole, self._cut_rest(inputs), before_rest, own
            )
            sums = [one + more for one, more in zip(sums, by_whole, strict=True)]
            parts.append(by_inputs)
        joined = [_join(rows) for rows in zip(*parts, strict=True)]
        return (
            _spread(sums, self._watched[0], len(whole)),
            _spread(joined, self._watched[1], len(inputs)),
            [None] * len(before_rest),
        )

    def _differentiate(
        self, whole: _Tensors, cut: _Tensors, state: _Tensors, arrived: dict[int, Any]
    ) -> tuple[list[Any], list[Any]]:
        """Runs a micro-batch again; returns the gradients of the tensors that are watched."""

        def run(watched_whole: list[Any], watched_cut: list[Any]) -> list[Any]:
            made, _ = self._run_micro_batch(
                _replace(whole, self._watched[0], watched_whole),
                _replace(cut, self._watched[1], watched_cut),
                state,
            )
            return [made[place] for place in arrived]

        sources = [
            [tensors[place] for place in places]
            for tensors, places in zip((whole, cut), self._watched, strict=True)
        ]
        _, pull_back = jax.vjp(run, *sources)
        by_whole, by_inputs = pull_back(list(arrived.values()))
        return by_whole, by_inputs

    def _run_micro_batch(
        self, whole: _Tensors, cut: _Tensors, state: _Tensors
    ) -> tuple[list[Any], list[Any]]:
        trainable, shared = whole[: self._num_trainable], whole[self._num_trainable :]
        made = self._segment(trainable, shared, state, cut)
        self._num_rows = len(made.samples)
        return [*made.samples, *made.micro_batches], made.state

    def _cut(self, inputs: _Tensors, index: Any) -> list[Any]:
        return [_slice(one, index, self._size) for one in inputs]

    def _cut_rest(self, inputs: _Tensors) -> list[Any]:
        return [one[self._num_whole * self._size :] for one in inputs]


def _is_primal(one: Any) -> bool:
    return isinstance(one, CustomVJPPrimal)


def _find_watched(given: Any) -> list[int]:
    return [place for place, one in enumerate(given) if one.perturbed and has_gradient(one.value)]


def _slice(tensor: Any, index: Any, size: int) -> Any:
    return jax.lax.dynamic_slice_in_dim(tensor, index * size, size)


def _unstack(stacked: Any) -> Any:
    """Returns the rows of all micro-batches one below another."""
    return stacked.reshape(-1, *stacked.shape[2:])


def _join(parts: Sequence[Any]) -> Any:
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)


def _replace(tensors: _Tensors, places: Sequence[int], values: Sequence[Any]) -> list[Any]:
    by_place = dict(zip(places, values, strict=True))
    return [by_place.get(place, one) for place, one in enumerate(tensors)]


def _spread(values: Sequence[Any], places: Sequence[int], length: int) -> list[Any]:
    return _replace([None] * length, places, values)
