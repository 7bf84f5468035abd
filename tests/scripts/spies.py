"""Objects that count each call of their own code, kept by names that memfit looks at.

As a script it trains on them and prints which of their code ran: nothing, under `memfit run` too.
"""

import collections
import sys
import types

calls = collections.Counter()
# Python itself calls these where an object is made or goes away.
_MAKING = {"__new__", "__init__", "__init_subclass__", "__class_getitem__", "__del__", "__class__"}
_MAKING |= {"__prepare__", "__instancecheck__", "__subclasscheck__", "__call__", "__dict__"}


def counting(kind, name):
    inherited = getattr(kind, name)

    def spy(*args, **kwargs):
        if watching:
            calls[f"{kind.__name__}.{name}"] += 1
        return inherited(*args, **kwargs)

    return spy


def spied(kind, **more):
    """What a class with this base defines: each of its methods, counted."""
    names = [name for name in dir(kind) if name not in _MAKING]
    methods = {name: counting(kind, name) for name in names if callable(getattr(kind, name))}
    return {**methods, **more}


def noted(name):
    def read(_self):
        if watching:
            calls[name] += 1
        return 0

    return property(read)


class SpyType(type):
    def __getattribute__(cls, name):
        if watching:
            calls[f"SpyType.{name}"] += 1
        return type.__getattribute__(cls, name)

    def __eq__(cls, other):
        calls["SpyType.__eq__"] += watching
        return True

    def __hash__(cls):
        calls["SpyType.__hash__"] += watching
        return 7

    def __instancecheck__(cls, _value):
        calls["SpyType.__instancecheck__"] += watching
        return False

    def __subclasscheck__(cls, _kind):
        calls["SpyType.__subclasscheck__"] += watching
        return False


watching = False
PROPERTIES = {name: noted(name) for name in ("nbytes", "shape", "dtype", "buffer", "grad_fn")}
KINDS = [
    SpyType(f"Spy{base.__name__.title()}", (base,), spied(base, **PROPERTIES))
    for base in (object, list, dict, set, collections.deque, tuple, str, Exception)
]
Plain, List, Dict, Set, Deque, Tuple, Text, Error = KINDS


class LazyModule(types.ModuleType):
    def __getattribute__(self, name):
        if watching:
            calls[f"LazyModule.{name}"] += 1
        return types.ModuleType.__getattribute__(self, name)


lazy = LazyModule("lazy")
lazy.__file__ = __file__
sys.modules["lazy"] = lazy


class Holder(metaclass=SpyType):
    """An object of the user's own with attributes, properties and a class attribute."""

    shared = List()
    nbytes = noted("Holder.nbytes")

    def __init__(self):
        self.own = List()

    def __getattr__(self, name):
        calls[f"Holder.{name}"] += watching
        raise AttributeError(name)


holder = Holder()
kept = {"lists": List(), "dicts": Dict(), "sets": Set(), "deques": Deque(), "errors": List()}
kept_by_text = Dict()
large = [Tuple(range(1_000_000)), {"k" * 1_000_000: List()}]


def grow(number):
    """Adds to everything, without a call that is counted."""
    array = spied_array()
    for each in (kept["lists"], kept["errors"], Holder.__dict__["shared"]):
        list.append(each, Plain())
    list.append(kept["errors"], Error())
    list.append(object.__getattribute__(holder, "own"), array)
    dict.__setitem__(kept["dicts"], Text(number), List([array]))
    dict.__setitem__(kept_by_text, (Text(number),), array)
    set.add(kept["sets"], Plain())
    collections.deque.append(kept["deques"], Tuple([array]))


def spied_array():
    import numpy as np

    class Array(np.ndarray):
        nbytes = noted("Array.nbytes")
        dtype = noted("Array.dtype")
        shape = noted("Array.shape")
        base = noted("Array.base")

    return np.ndarray.__new__(Array, (50_000,))


def main():
    global watching
    import keras
    import numpy as np

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.ones((8, 4), "float32")
    watching = True
    for number in range(40):
        watching = False
        grow(number)
        watching = True
        model.fit(x, x[:, :1], verbose=0, callbacks=[])
    watching = False
    print(dict(calls))


if __name__ == "__main__":
    main()
