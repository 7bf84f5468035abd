"""The state of a training on disk: all variables that a model leads to, and random numbers."""

import random
import time
from types import TracebackType
from typing import Any

from memfit.backends import load
from memfit.backends.arrays_on_disk import Kept
from memfit.fitting.state.reachable import walk
from memfit.keras_private.layers import stored_value
from memfit.keras_private.state import find_shared_seed, forget_shared_seed

# A pipeline that reads ahead has filled its buffer when it has drawn nothing for so long.
_QUIET_S = 0.02
_LONGEST_S = 2.0


def wait_until_quiet() -> None:
    """Waits until no other thread draws random numbers of Python or NumPy.

    A pipeline that reads ahead draws them for batches that are not asked for yet. Putting numbers
    back meanwhile would have it draw some twice.
    """
    until_s = time.monotonic() + _LONGEST_S
    before, now = None, _read_random()
    while before != now and time.monotonic() < until_s:
        time.sleep(_QUIET_S)
        before, now = now, _read_random()


def _read_random() -> tuple[Any, ...]:
    import numpy as np

    of_numpy: Any = np.random.get_state()
    return random.getstate(), of_numpy[1].tobytes(), of_numpy[2:]


class Snapshot:
    """Keeps the values of all variables that can be reached from a model in a file.

    Those of optimizers and metrics are among them, wherever the model holds them, and those that
    Keras knows nothing of. Random numbers of Python, NumPy and the framework go on from here, too.

    As a `with` block it puts them back at the end.

    Args:
        model: A compiled Keras model.
    """

    def __init__(self, model: Any) -> None:
        import numpy as np
        from keras import ops

        state = load("state")
        self._random = (random.getstate(), np.random.get_state(), state.get_random_state())
        self._shared_seed = find_shared_seed()
        self._variables, self._native = _find_variables(model)
        if self._shared_seed is not None:
            self._variables.append(self._shared_seed)
        self._kept = Kept(ops.convert_to_numpy(one.value) for one in self._variables)
        self._kept_native = Kept(state.read(one) for one in self._native)

    def restore(self) -> None:
        """Puts the values back."""
        import numpy as np

        state = load("state")
        for one, value in zip(self._variables, self._kept.read(), strict=True):
            one.assign(value)
        for one, value in zip(self._native, self._kept_native.read(), strict=True):
            state.write(one, value)
        if self._shared_seed is None:
            forget_shared_seed()
        of_python, of_numpy, of_framework = self._random
        random.setstate(of_python)
        np.random.set_state(of_numpy)
        state.set_random_state(of_framework)

    def __enter__(self) -> "Snapshot":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.restore()
        self._kept.close()
        self._kept_native.close()


def _find_variables(model: Any) -> tuple[list[Any], list[Any]]:
    """Returns Keras's variables, and those of the framework that are no value of one of these."""
    import keras

    find_native = load("state").find_variable
    variables, native = {}, {}
    for one in (thing.value for thing in walk(model)):
        if isinstance(one, keras.Variable):
            variables[id(one)] = one
        elif (found := find_native(one)) is not None:
            native[id(found)] = found
    for one in variables.values():
        native.pop(id(stored_value(vars(one))), None)
    return list(variables.values()), list(native.values())
