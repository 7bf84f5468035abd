"""What memfit did to a user's model, as one line of text, and how to undo it."""

from collections.abc import Callable
from types import TracebackType
from typing import Any


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
        if hasattr(model, name):
            setattr(model, name, None)
