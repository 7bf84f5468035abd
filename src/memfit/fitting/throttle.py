"""One batch at a time: a training that runs ahead of itself holds the batches of many steps.

JAX takes a step's word for done and feeds the next, up to 32 of them; each holds its batch. On
torch what the last steps have made waits for the garbage collector. Within a tight budget the
training is made to wait for each step, the youngest garbage is collected after it, and what malloc
keeps of it is given back: a heap in which freed and living tensors lie mixed would else grow by a
tenth over some steps.
"""

import gc
from typing import Any

from memfit.fitting.gauges import Gauge
from memfit.fitting.headroom import Headroom
from memfit.fitting.plan import Plan

# XLA on a CPU has at most so many computations started and not done.
_MOST_AHEAD = 32
# What a pipeline of a user's own may hold ready is not known; Keras's own for arrays holds one.
_OF_PIPELINE, _OF_ARRAYS = 3, 1
# With so much of the budget left, what a few steps leave behind does not matter.
_AMPLE_SHARE = 0.25
# A process that takes less of its budget before training is not made to wait.
_SURELY_AMPLE_SHARE = 0.1


def count_queued(array_bytes: int) -> int:
    """Returns how many batches are held beside the one that is trained on.

    Args:
        array_bytes: The size of the data, if it is arrays; 0 for a pipeline.
    """
    return _OF_ARRAYS if array_bytes else _OF_PIPELINE


def add_callback(arguments: dict[str, Any], callback: Any) -> dict[str, Any]:
    """Returns the arguments for `fit`, by name, with one more callback."""
    import keras

    given = arguments.get("callbacks")
    if isinstance(given, keras.callbacks.CallbackList):
        given.append(callback)
        return dict(arguments)
    return {**arguments, "callbacks": [*keras.tree.flatten(given or []), callback]}


def may_be_tight(budget_bytes: int, idle_bytes: int) -> bool:
    """Returns whether steps may have to be waited for, which Keras must know before it begins."""
    return idle_bytes > _SURELY_AMPLE_SHARE * budget_bytes


def find_most_kept(headroom: Headroom, plan: Plan, batch_bytes: int) -> int | None:
    """Returns what may be taken between steps; `None` if there is room for much more.

    Args:
        headroom: What may be used.
        plan: How it is trained.
        batch_bytes: The size of a batch.
    """
    left_bytes = headroom.budget_bytes - plan.peak_bytes
    if left_bytes >= max(_MOST_AHEAD * batch_bytes, _AMPLE_SHARE * headroom.budget_bytes):
        return None
    # A step adds so much at most, if it can use nothing of what the one before has freed.
    return headroom.budget_bytes - (plan.peak_bytes - headroom.idle_bytes)


def make_pace(gauge: Gauge, most_kept_bytes: int | None = None) -> Any:
    """Returns a callback that waits for each step and lets go of what it leaves behind.

    Args:
        gauge: The memory that is looked at.
        most_kept_bytes: When more is taken after a step, free memory is given back; with `None`
            nothing is. An attribute of the callback, which may be set while `fit` runs.
    """
    import keras

    class Pace(keras.callbacks.Callback):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.most_kept_bytes = most_kept_bytes

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            """That it is here makes Keras wait for the step."""
            if self.most_kept_bytes is not None:
                gc.collect(0)
                gauge.trim_above(self.most_kept_bytes)

        def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
            """The same in validation."""
            self.on_train_batch_end(batch)

    return Pace()
