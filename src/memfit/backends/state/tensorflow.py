"""TensorFlow: its own variables, and the numbers of random operations that have no generator."""

from typing import Any

import tensorflow as tf
from tensorflow.python.trackable.data_structures import TrackableDataStructure, _DictWrapper


def is_module(value: Any) -> bool:
    """Returns whether it is a `tf.Module`, or what TensorFlow makes of a list in one."""
    return issubclass(type(value), tf.Module | TrackableDataStructure)


def unwrap(value: Any) -> Any:
    """Returns the dictionary that TensorFlow has put a wrapper around."""
    return value.__wrapped__ if issubclass(type(value), _DictWrapper) else value


def find_variable(value: Any) -> Any | None:
    """Returns a `tf.Variable` with numbers; that of a `tf.random.Generator`, too."""
    if isinstance(value, tf.random.Generator):
        return value.state
    return value if isinstance(value, tf.Variable) and value.dtype != tf.string else None


def read(variable: Any) -> Any:
    """Returns its value."""
    return variable.numpy()


def write(variable: Any, array: Any) -> None:
    """Assigns the value."""
    variable.assign(array)


def get_random_state() -> Any:
    """Returns where the seeds of eager operations are, which follow `tf.random.set_seed`."""
    drawn = _eager_seeds()
    return None if drawn is None else drawn.getstate()


def set_random_state(state: Any) -> None:
    """Has operations that are run from now on draw from there.

    An operation that has run keeps its own place; it is made anew.
    """
    drawn = _eager_seeds()
    if state is not None and drawn is not None:
        drawn.setstate(state)
    _context().clear_kernel_cache()


def _context() -> Any:
    from tensorflow.python.eager import context

    return context.context()


def _eager_seeds() -> Any | None:
    """What seeds are drawn from once `tf.random.set_seed` was called: a `random.Random`."""
    return getattr(_context(), "_rng", None)
