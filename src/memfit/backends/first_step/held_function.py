"""A model whose functions call something before their first step; the same for all frameworks."""

from collections.abc import Callable
from typing import Any

from memfit.backends.first_step import OnFirst, Which
from memfit.errors import UsageError
from memfit.keras_private.layers import all_layers
from memfit.keras_private.trainer import has_distribute_strategy, running_fit_kept

# Takes the holding, Keras's function and what Keras calls it with; returns what it returns.
Intercept = Callable[..., Any]


class HeldFunction:
    """Stands in for `make_train_function` or `make_test_function` of one model.

    Args:
        model: A compiled Keras model.
        on_first: Gets the first batch.
        which: Which function is held.
        intercept: Takes the first batch out of what Keras calls its function with, gives it to
            `call_first`, and runs `function` on it.
        on_begin: Called when a training begins.

    Raises:
        UsageError: The model cannot be held, and why.
    """

    def __init__(
        self,
        model: Any,
        on_first: OnFirst,
        which: Which,
        intercept: Intercept,
        on_begin: Callable[[], None] | None = None,
    ) -> None:
        self.model = model
        self.is_training = which == "train"
        self._on_first = on_first
        self._intercept = intercept
        self._on_begin = on_begin
        self._name = f"{which}_function"
        self._maker = f"make_{which}_function"
        self._is_inside = False
        self._held: Any = None
        self._real: Any = None
        self._seen: tuple[Any, Any] = (None, None)
        self._asks_again = False
        self.before: Any = None
        _check(model, self._maker)

    @property
    def function(self) -> Any:
        """Keras's function, made anew if `on_first` had it forgotten."""
        self._is_inside = True
        try:
            self._make_held()
        finally:
            self._is_inside = False
        found = getattr(self.model, self._name)
        if self._asks_again:
            self._hold(found)
        else:
            self._seen = (found, _read_trainable(self.model))
        return found

    def install(self) -> Callable[[], None]:
        """Puts itself into the model, below what holds it already; returns what takes it out."""
        lowest = _find_lowest(self.model.__dict__.get(self._maker))
        self.before = find_below(self.model, self._maker)
        if lowest is None:
            self.model.__dict__[self._maker] = self._make_held
        else:
            lowest.before = self._make_held

        def undo() -> None:
            _take_out(self.model, self._maker, self._make_held, self.before)
            if self._held is not None and getattr(self.model, self._name) is self._held:
                setattr(self.model, self._name, self._real)

        return undo

    def call_first(self, batch: Any) -> None:
        """Calls `on_first`, and puts back what a running `fit` keeps in the model."""
        setattr(self.model, self._name, self._real)
        self._is_inside = True
        try:
            with running_fit_kept(self.model):
                self._asks_again = self._on_first(batch) is False
        except BaseException:
            self._held = None  # the next fit is held again
            raise
        finally:
            self._is_inside = False

    def _make_held(self, force: bool = False) -> Any:
        if self._on_begin is not None and not self._is_inside:
            self._on_begin()
        if self._held is not None and getattr(self.model, self._name) is self._held:
            setattr(self.model, self._name, self._real)  # others may hold it too
        self._make(force=force)
        function = getattr(self.model, self._name)
        if self._is_inside or self._seen == (function, _read_trainable(self.model)):
            return function
        return self._hold(function)

    def _hold(self, function: Any) -> Any:
        """Has the model call `on_first` before it runs its function."""

        def held(*args: Any) -> Any:
            return self._intercept(self, function, *args)

        self._real, self._held = function, held
        setattr(self.model, self._name, held)
        return held

    def _make(self, *, force: bool) -> None:
        if self.before is not None:
            self.before(force=force)
        else:
            getattr(type(self.model), self._maker)(self.model, force=force)


def put_below(model: Any, maker: str, make: Any) -> Callable[[], None]:
    """Has a model make its function by `make`; what holds the model holds that one.

    Returns:
        What undoes it.
    """
    own = model.__dict__
    lowest = _find_lowest(own.get(maker))
    if lowest is None:
        before, own[maker] = own.get(maker), make
    else:
        before, lowest.before = lowest.before, make
    return lambda: _take_out(model, maker, make, before)


def find_below(model: Any, maker: str) -> Any | None:
    """Returns what makes the function of a model instead of Keras, however it is held."""
    made = model.__dict__.get(maker)
    lowest = _find_lowest(made)
    return made if lowest is None else lowest.before


def _find_lowest(make: Any) -> HeldFunction | None:
    """The holding that was installed first."""
    found = None
    while isinstance(holding := getattr(make, "__self__", None), HeldFunction):
        found, make = holding, holding.before
    return found


def _take_out(model: Any, maker: str, make: Any, before: Any) -> None:
    """Closes the gap that a maker leaves."""
    own = model.__dict__
    current = own.get(maker)
    if current == make:
        if before is None:
            del own[maker]
        else:
            own[maker] = before
        return
    while isinstance(holding := getattr(current, "__self__", None), HeldFunction):
        if holding.before == make:
            holding.before = before
            return
        current = holding.before


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
