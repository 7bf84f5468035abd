"""Random draws of Keras, held so that a sample draws the same alone and among others."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, SupportsIndex

from memfit.keras_private.names import relies_on

_BY_SHAPE = ("normal", "uniform", "randint", "truncated_normal", "gamma", "binomial", "beta")
_RANDOM = "keras.src.backend.random"


class HeldDraws:
    """What is known of random draws while they are held.

    Attributes:
        turn: Which numbers are drawn: another turn, others. A tensor on JAX while it compiles.
        are_once: Whether some draw was one for the whole batch.
        are_single: Whether some draw was one number, for a sample or for the batch. It may be an
            unusual one, such as a share of 0 in a mix.
    """

    def __init__(self) -> None:
        self.turn: Any = 0
        self.are_once = False
        self.are_single = False

    def note(self, shape: Sequence[int], axis: int | None) -> None:
        """Takes note of a draw of this shape, with samples along this axis if it has any."""
        if axis is None:
            self.are_once = True
        others = [size for index, size in enumerate(shape) if index != axis]
        if all(isinstance(size, int) and size == 1 for size in others):
            self.are_single = True

    def make_next(self) -> Callable[..., Any]:
        """Returns what stands in for the `next` of a generator of seeds.

        It gives a seed by the name of the generator, the same at every call.
        """

        def next_that_stays(generator: Any, ordered: bool = True) -> Any:
            from keras import ops

            seed = sum(ord(letter) for letter in generator.name)
            parts = [ops.cast(one, generator.state.dtype) for one in (seed, self.turn)]
            return ops.stack(parts)

        return next_that_stays


@relies_on(
    *(f"{_RANDOM}.{name}" for name in (*_BY_SHAPE, "categorical", "dropout")),
    "keras.src.random.seed_generator.SeedGenerator.next",
)
@contextlib.contextmanager
def held_draws(sizes: Collection[int]) -> Iterator["HeldDraws"]:
    """Has every sample draw the same numbers, and every call of a generator too.

    Layers, `keras.random` and augmentation all draw through the functions of one module; they are
    replaced meanwhile. An axis as long as one of `sizes` has the samples: one sample is drawn and
    repeated. So a batch draws the same whole and in micro-batches.

    Args:
        sizes: How many samples a batch or a micro-batch may have.
    """
    from keras.src.backend import random
    from keras.src.random.seed_generator import SeedGenerator

    held = HeldDraws()
    rows = _Rows(sizes, held)
    stand_ins = {name: rows.by_shape(getattr(random, name)) for name in _BY_SHAPE}
    stand_ins["categorical"] = rows.by_logits(random.categorical)
    stand_ins["dropout"] = rows.by_mask(random.dropout)
    with contextlib.ExitStack() as replaced:
        for name, stand_in in stand_ins.items():
            _replace(random, name, stand_in, replaced)
        _replace(SeedGenerator, "next", held.make_next(), replaced)
        yield held


def _replace(owner: Any, name: str, value: Any, replaced: contextlib.ExitStack) -> None:
    replaced.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, value)


class _Rows:
    """Makes stand-ins for functions that draw, which draw for one sample."""

    def __init__(self, sizes: Collection[int], held: HeldDraws) -> None:
        self._sizes = frozenset(sizes)
        self._held = held

    def by_shape(self, draw: Callable[..., Any]) -> Callable[..., Any]:
        """For a function that takes a shape, and parameters that may differ by sample."""

        def drawn(shape: Sequence[int], *args: Any, **kwargs: Any) -> Any:
            from keras import ops

            axis = self._find_axis(shape)
            if axis is None:
                return draw(shape, *args, **kwargs)
            one = (*shape[:axis], 1, *shape[axis + 1 :])
            parts = _cut_parameters(args, kwargs, axis, shape[axis], len(shape))
            if parts is None:
                return ops.broadcast_to(draw(one, *args, **kwargs), shape)
            return ops.concatenate([draw(one, *a, **k) for a, k in parts], axis=axis)

        return drawn

    def by_logits(self, draw: Callable[..., Any]) -> Callable[..., Any]:
        """For `categorical`: each sample draws by its own probabilities."""

        def drawn(logits: Any, num_samples: int, *args: Any, **kwargs: Any) -> Any:
            from keras import ops

            logits = ops.convert_to_tensor(logits)
            rows = [logits[i : i + 1] for i in range(logits.shape[0])]
            return ops.concatenate([draw(one, num_samples, *args, **kwargs) for one in rows])

        return drawn

    def by_mask(self, draw: Callable[..., Any]) -> Callable[..., Any]:
        """For `dropout`: one mask for all samples."""

        def drawn(inputs: Any, rate: Any, noise_shape: Any = None, seed: Any = None) -> Any:
            from keras import ops

            shape = ops.shape(inputs)  # a tensor for what a graph does not know
            noise = [
                size if one is None else one
                for one, size in zip(noise_shape or [None] * len(shape), shape, strict=True)
            ]
            axis = self._find_axis(noise)
            if axis is not None:
                noise[axis] = 1
            mask = draw(ops.ones(noise, inputs.dtype), rate, noise_shape=tuple(noise), seed=seed)
            return inputs * mask

        return drawn

    def _find_axis(self, shape: Sequence[int]) -> int | None:
        found = next((i for i, size in enumerate(shape) if self._counts_samples(size)), None)
        self._held.note(shape, found)
        return found

    def _counts_samples(self, size: Any) -> bool:
        """Whether an axis has the samples: in a graph theirs is the one of unknown length."""
        return size in self._sizes if isinstance(size, SupportsIndex) else True


def _cut_parameters(
    args: tuple[Any, ...], kwargs: dict[str, Any], axis: int, size: int, rank: int
) -> list[tuple[list[Any], dict[str, Any]]] | None:
    """Returns the parameters of each sample; `None` if they are the same for all."""

    def differs(one: Any) -> bool:
        shape = tuple(getattr(one, "shape", ()))
        return len(shape) == rank and shape[axis] == size

    def cut(one: Any, index: int) -> Any:
        return one[(slice(None),) * axis + (slice(index, index + 1),)] if differs(one) else one

    if not any(differs(one) for one in (*args, *kwargs.values())):
        return None
    return [
        ([cut(one, i) for one in args], {name: cut(one, i) for name, one in kwargs.items()})
        for i in range(size)
    ]
