"""A model whose functions call something before their first step; the same for all frameworks."""

from collections.abc import Callable
from typing import Any

from memfit.backends.first_step import OnFirst, Which
from memfit.errors import UsageError
from memfit.keras_private.layers import all_layers
from memfit.keras_private.trainer import has_distribute_strategy, running_fit_kept

# Takes the holding, Keras's function and what Keras calls it with; returns what it returns.
Intercept = Callable[..., Any]


class Holding:
    """Stands in for `make_train_function` or `make_test_function` of one model.

    Args:
        model: A compiled Keras model.
        on_first: Gets the first batch.
        which: Which function is held.
        intercept: Takes the first batch out of what Keras calls its function with, gives it to
            `call_first`, and runs `function` on it.

    Raises:
        UsageError: The model cannot be held, and why.
    """

    def __init__(self, model: Any, on_first: OnFirst, which: Which, intercept: Intercept) -> None:
        self.model = model
        self.is_training = which == "train"
        self._on_first = on_first
        self._intercept = intercept
        self._name = f"{which}_function"
        self._maker = f"make_{which}_function"
        self._is_inside = False
        self._held: Any = None
        self._real: Any = None
        self._seen: tuple[Any, Any] = (None, None)
        _check(model, self._maker)

    @property
    def function(self) -> Any:
        """Keras's function, made anew if `on_first` had it forgotten."""
        self._is_inside = True
        getattr(self.model, self._maker)()
        self._is_inside = False
        found = getattr(self.model, self._name)
        self._seen = (found, _read_trainable(self.model))
        return found

    def install(self) -> Callable[[], None]:
        """Puts itself into the model; returns what takes it out."""
        own = self.model.__dict__
        self._before = own.get(self._maker)
        own[self._maker] = self._make_held

        def undo() -> None:
            if own.get(self._maker) == self._make_held:
                del own[self._maker]
                if self._before is not None:
                    own[self._maker] = self._before
            if self._held is not None and getattr(self.model, self._name) is self._held:
                setattr(self.model, self._name, self._real)

        return undo

    def call_first(self, batch: Any) -> None:
        """Calls `on_first`, and puts back what a running `fit` keeps in the model."""
        setattr(self.model, self._name, self._real)
        self._is_inside = True
        try:
            with running_fit_kept(self.model):
                self._on_first(batch)
        except BaseException:
            self._held = None  # the next fit is held again
            raise
        finally:
            self._is_inside = False

    def _make_held(self, force: bool = False) -> Any:
        self._make(force=force)
        function = getattr(self.model, self._name)
        if self._is_inside or function is self._held:
            return function
        if self._seen == (function, _read_trainable(self.model)):
            return function
        self._real = function

        def held(*args: Any) -> Any:
            return self._intercept(self, function, *args)

        self._held = held
        setattr(self.model, self._name, held)
        return held

    def _make(self, *, force: bool) -> None:
        if self._before is not None:
            self._before(force=force)
        else:
            getattr(type(self.model), self._maker)(self.model, force=force)


def _check(model: Any, maker: str) -> None:
    if not getattr(type(model), maker).__module__.startswith("keras."):
        raise UsageError(
            f"{type(model).__name__} has a {maker} of its own, so memfit cannot see the batches "
            "that it trains on. Remove it."
        )
    if has_distribute_strategy(model):
        raise UsageError(
            f"{model.name!r} was made under a tf.distribute strategy, and memfit works on one "
            "device only. Make it outside of the strategy's scope."
        )


def _read_trainable(model: Any) -> tuple[tuple[int, bool], ...]:
    return tuple((id(layer), layer.trainable) for layer in all_layers(model))
