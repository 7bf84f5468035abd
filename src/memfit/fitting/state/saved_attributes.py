"""Plain attributes and containers of a model and all it holds, to be put back after a step.

A step of the user's may count, append to a list or build what was not built. What Keras compiled
of the model stays.
"""

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

from memfit.fitting.state.reachable import Thing, slots_of, walk
from memfit.keras_private.layers import VALUE
from memfit.slots import own_attributes

# What stays as it is then: what was compiled, and the value of a Keras variable.
_LEFT_ALONE = ("train_function", "test_function", "predict_function", VALUE)
# Larger arrays are data, not what a step counts in.
_MOST_ARRAY_BYTES = 2**24
_UNCHANGING = (tuple, frozenset)
_Restore = Callable[[], None]


@contextlib.contextmanager
def attributes_kept(root: Any) -> Iterator[None]:
    """Puts back, at the end of the block, what it changed in attributes and containers.

    Variables keep the values they then have.
    """
    restoring = [restore for one in walk(root) for restore in _save(one)]
    try:
        yield
    finally:
        for restore in restoring:
            restore()


def _save(thing: Thing) -> Iterator[_Restore]:
    """Gives what puts one thing back as it is now."""
    import numpy as np

    value, kind = thing.value, thing.kind
    if kind.container is not None and kind.container not in _UNCHANGING:
        yield _save_container(value, kind.container)
    elif issubclass(type(value), np.ndarray):
        if value.flags.writeable and value.nbytes <= _MOST_ARRAY_BYTES:
            yield _save_array(value)
    elif issubclass(type(value), random.Random | np.random.Generator | np.random.RandomState):
        yield _save_generator(value)
    if kind.is_opened:
        attributes = own_attributes(value)
        if attributes:
            yield _save_attributes(attributes)
        if kind.slots:
            yield _save_slots(thing)


def _save_attributes(attributes: dict[str, Any]) -> _Restore:
    before = {name: one for name, one in attributes.items() if name not in _LEFT_ALONE}

    def restore() -> None:
        now = {name: one for name, one in attributes.items() if name not in _LEFT_ALONE}
        if _is_same(now, before):
            return
        left = {name: attributes[name] for name in _LEFT_ALONE if name in attributes}
        attributes.clear()
        attributes.update({**before, **left})

    return restore


def _save_slots(thing: Thing) -> _Restore:
    before = slots_of(thing.value, thing.kind)

    def restore() -> None:
        now = slots_of(thing.value, thing.kind)
        for slot in now.keys() - before.keys():
            slot.__delete__(thing.value)
        for slot, inner in before.items():
            if now.get(slot) is not inner:
                slot.__set__(thing.value, inner)

    return restore


def _save_container(value: Any, base: Any) -> _Restore:
    if issubclass(base, dict):
        return _save_dict(value, base)
    before = list(base.__iter__(value))

    def restore() -> None:
        now = list(base.__iter__(value))
        if len(now) != len(before) or not all(map(_is_identical, now, before)):
            base.clear(value)
            (base.update if base is set else base.extend)(value, before)

    return restore


def _save_dict(value: Any, base: Any) -> _Restore:
    before = dict(base.items(value))

    def restore() -> None:
        if not _is_same(dict(base.items(value)), before):
            base.clear(value)
            for key, inner in before.items():
                base.__setitem__(value, key, inner)

    return restore


def _save_array(array: Any) -> _Restore:
    before = array.copy()

    def restore() -> None:
        array[...] = before

    return restore


def _save_generator(generator: Any) -> _Restore:
    import numpy as np

    if isinstance(generator, np.random.Generator):
        bits, before = generator.bit_generator, generator.bit_generator.state
        return lambda: setattr(bits, "state", before)
    if isinstance(generator, random.Random):
        now = generator.getstate()
        return lambda: generator.setstate(now)
    drawn = generator.get_state()
    return lambda: generator.set_state(drawn)


def _is_same(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    return len(one) == len(other) and all(
        name is key and inner is value
        for (name, inner), (key, value) in zip(one.items(), other.items(), strict=True)
    )


def _is_identical(one: Any, other: Any) -> bool:
    return one is other
