"""TensorFlow: its gradient registry, Python functions in graphs, open tapes."""

import sys
from typing import Any

from memfit.backends.events import tf_data
from memfit.backends.events.tensorflow import count_long_tapes
from memfit.backends.registries import Counted


def is_compiler_loaded() -> bool:
    """Returns `True`: Keras loads nothing to clear its session."""
    return True


def count() -> Counted:
    """Counts what TensorFlow keeps for itself: nothing in the script names these."""
    ops = sys.modules.get("tensorflow.python.framework.ops")
    if ops is None:
        return Counted()
    numbers = {
        "gradient_registry": len(ops.gradient_registry._registry),
        "py_functions": tf_data.count_python_functions(),
        "long_tapes": count_long_tapes(),
    }
    return Counted(numbers)


def registered() -> frozenset[str]:
    """Returns the custom gradients by name; those of an optimizer hold a whole train graph."""
    ops: Any = sys.modules["tensorflow.python.framework.ops"]
    names = ops.gradient_registry._registry
    return frozenset(name for name in names if name.startswith("CustomGradient-"))


def release(names: frozenset[str]) -> None:
    """Takes `names` out of the gradient registry, which is all that holds their graphs."""
    ops: Any = sys.modules["tensorflow.python.framework.ops"]
    for name in names:
        ops.gradient_registry._registry.pop(name, None)
