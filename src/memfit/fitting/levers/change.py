"""What memfit did to a user's model, as one line of text, and how to undo it."""

import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

from memfit.keras_private.trainer import forget_trace


class Change:
    """One thing that a lever changed.

    It prints itself, and `undo()` puts back what was there before; as a `with` block it is undone
    at the end. Undoing twice does nothing more.

    Example:
        ```python
        change = memfit.split(model, 32)
        print(change)        # batches run in micro-batches of 32 samples; ...
        change.undo()
        ```

    Args:
        text: What was done and what it costs, in a sentence without a full stop.
        undo: Puts back what was there before.
    """

    def __init__(self, text: str, undo: Callable[[], None]) -> None:
        self.text = text
        self._undo: Callable[[], None] | None = undo

    def undo(self) -> None:
        """Puts back what was there before."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()

    def __enter__(self) -> "Change":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.undo()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Change({self.text!r})"


def forget_functions(model: Any) -> None:
    """Makes Keras build anew what it compiled of a model; of a layer there is nothing."""
    for name in ("train_function", "test_function", "predict_function"):
        if getattr(model, name, None) is not None:
            forget_trace(getattr(model, name))
            setattr(model, name, None)


class Marked:
    """Models that a lever is on; they are not kept alive."""

    def __init__(self) -> None:
        self._models: dict[int, weakref.ref[Any]] = {}

    def __contains__(self, model: Any) -> bool:
        found = self._models.get(id(model))
        return found is not None and found() is model

    def add(self, model: Any) -> None:
        """Marks a model; those that are gone are forgotten."""
        self._models = {key: one for key, one in self._models.items() if one() is not None}
        self._models[id(model)] = weakref.ref(model)

    def discard(self, model: Any) -> None:
        """Takes the mark away."""
        self._models.pop(id(model), None)
