"""One batch at a time: a training that runs ahead of itself holds the batches of many steps.

JAX takes a step's word for done and feeds the next, up to 32 of them; each holds its batch. On
torch the last steps' batches wait for the garbage collector. Within a tight budget the training
is made to wait for each step, and the youngest garbage is collected after it.
"""

import gc
from typing import Any

# XLA on a CPU has at most so many computations under way.
_MOST_AHEAD = 32
# What a pipeline of a person's own may hold ready is not known; Keras's own for arrays holds one.
_OF_PIPELINE, _OF_ARRAYS = 3, 1


def count_queued(array_bytes: int) -> int:
    """Returns how many batches are held beside the one that is trained on.

    Args:
        array_bytes: The size of the data, if it is arrays; 0 for a pipeline.
    """
    return _OF_ARRAYS if array_bytes else _OF_PIPELINE


def add_pace(arguments: dict[str, Any], batch_bytes: int, left_bytes: int) -> dict[str, Any]:
    """Returns the arguments for `fit`, with a callback that waits for each step if need be.

    Args:
        arguments: Those of `fit`, by name.
        batch_bytes: The size of a batch.
        left_bytes: What the budget leaves beside a step.
    """
    import keras

    if _MOST_AHEAD * batch_bytes <= left_bytes:
        return arguments

    class Pace(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            """That it is here makes Keras wait for the step."""
            gc.collect(0)

        def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
            """The same in validation."""
            gc.collect(0)

    given = arguments.get("callbacks")
    if isinstance(given, keras.callbacks.CallbackList):
        given.append(Pace())
        return arguments
    return {**arguments, "callbacks": [*keras.tree.flatten(given or []), Pace()]}
