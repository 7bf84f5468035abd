"""The state of a training on disk: weights, optimizer, metrics and seeds, to be put back."""

import random
import tempfile
from types import TracebackType
from typing import Any

from memfit.backends.steps import get_steps


class Snapshot:
    """Keeps the values of a model's variables in a file, which takes no memory.

    Random numbers of Python, NumPy and the framework go on from here, too.

    As a `with` block it puts them back at the end.

    Args:
        model: A built and compiled Keras model.
    """

    def __init__(self, model: Any) -> None:
        import numpy as np
        from keras import ops

        self._random = (random.getstate(), np.random.get_state(), get_steps().get_random_state())
        self._variables = _all_variables(model)
        self._file = tempfile.TemporaryFile(prefix="memfit-")  # noqa: SIM115
        self._kinds = []
        for one in self._variables:
            value = ops.convert_to_numpy(one.value)
            self._kinds.append((value.dtype, value.shape))
            self._file.write(value.tobytes())

    def restore(self) -> None:
        """Puts the values back."""
        import numpy as np

        self._file.seek(0)
        for one, (dtype, shape) in zip(self._variables, self._kinds, strict=True):
            count = int(np.prod(shape, dtype="int64"))
            data = self._file.read(count * dtype.itemsize)
            one.assign(np.frombuffer(data, dtype, count).reshape(shape))
        of_python, of_numpy, of_framework = self._random
        random.setstate(of_python)
        np.random.set_state(of_numpy)
        get_steps().set_random_state(of_framework)

    def __enter__(self) -> "Snapshot":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.restore()
        self._file.close()


def _all_variables(model: Any) -> list[Any]:
    optimizer = model.optimizer.variables if model.optimizer is not None else []
    together = [*model.variables, *optimizer, *model.metrics_variables]
    return list({id(one): one for one in together}.values())
