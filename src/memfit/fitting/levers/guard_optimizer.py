"""The variables of an optimizer: made all of them, or none."""

from collections.abc import Callable
from typing import Any

from memfit.backends import load
from memfit.backends.out_of_memory import is_out_of_memory
from memfit.heap.release import release
from memfit.keras_private.optimizer import remember_unbuilt
from memfit.units import format_size

_MOST_ATTEMPTS = 2


def guard_build(optimizer: Any) -> Callable[[], None]:
    """Makes `optimizer.build` leave nothing behind when there is no memory for its variables.

    It is tried once more, when memory was given back; then the error is raised with a note, and
    the optimizer can be built later as if nothing had happened.

    Returns:
        What undoes it.
    """
    build = optimizer.build

    def build_whole(variables: Any) -> None:
        for attempt in range(1, _MOST_ATTEMPTS + 1):
            unbuild = remember_unbuilt(optimizer)
            try:
                build(variables)
                load("retry").wait(optimizer.variables)
                return
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                unbuild()
                if attempt == _MOST_ATTEMPTS:
                    error.add_note(_explain(variables))
                    raise
            load("retry").release()
            release()

    optimizer.__dict__["build"] = build_whole

    def undo() -> None:
        optimizer.__dict__.pop("build", None)

    return undo


def _explain(variables: Any) -> str:
    import numpy as np

    weights_bytes = sum(
        int(np.prod(one.shape, dtype="int64")) * np.dtype(one.dtype).itemsize for one in variables
    )
    return (
        "memfit: there is no memory for what the optimizer keeps of each weight (the weights take "
        f"{format_size(weights_bytes)}, Adam keeps twice that), and smaller micro-batches would "
        "not help. The model is as it was; an optimizer that keeps less, such as SGD, may fit."
    )
