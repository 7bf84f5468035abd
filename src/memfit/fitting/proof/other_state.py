"""What a step may change beside weights and metrics: everything else that a model leads to."""

from collections.abc import Iterator
from typing import Any

from memfit.backends import load
from memfit.fitting.state.reachable import walk
from memfit.keras_private.layers import stored_value


class OtherState:
    """All variables that can be reached from a model, Keras's and the framework's own.

    Left out are what random numbers are drawn from, the variables of metrics, which are compared by
    themselves, and those of the optimizer in whose place the gradients are noted.

    Args:
        model: A built model.
    """

    def __init__(self, model: Any) -> None:
        import keras

        left_out = {id(one) for one in _left_out(model)}
        self.variables: list[Any] = []
        native = {}
        of_keras = set()
        for one in (thing.value for thing in walk(model)):
            if isinstance(one, keras.Variable):
                of_keras.add(id(stored_value(vars(one))))
                if id(one) not in left_out:
                    self.variables.append(one)
            elif load("proof").is_variable(one) and id(one) not in left_out:
                native[id(one)] = one
        self.variables += [one for key, one in native.items() if key not in of_keras]

    @property
    def owners(self) -> list[str]:
        """What has each variable, by the path that Keras gives it; any other has itself alone."""
        paths = (getattr(one, "path", f"{number}/") for number, one in enumerate(self.variables))
        return [path.rpartition("/")[0] for path in paths]

    def read(self) -> Iterator[Any]:
        """Gives the values as NumPy arrays."""
        import keras

        for one in self.variables:
            is_of_keras = isinstance(one, keras.Variable)
            yield load("proof").read(one.value if is_of_keras else one)


def _left_out(model: Any) -> Iterator[Any]:
    import keras

    if model.optimizer is not None:
        yield from model.optimizer.variables
    find_native = load("state").find_variable
    for one in (thing.value for thing in walk(model)):
        if isinstance(one, keras.random.SeedGenerator):
            yield one.state
        elif isinstance(one, keras.Metric):
            yield from one.variables
        elif (found := find_native(one)) is not None and found is not one:
            yield found  # the state of a generator
