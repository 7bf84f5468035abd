"""The state of a training on disk: weights, optimizer, metrics and seeds, to be put back."""

import random
from types import TracebackType
from typing import Any

from memfit.backends import load
from memfit.backends.arrays_on_disk import Kept


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

        self._random = (
            random.getstate(),
            np.random.get_state(),
            load("micro_batches").get_random_state(),
        )
        self._variables = _all_variables(model)
        self._kept = Kept(ops.convert_to_numpy(one.value) for one in self._variables)

    def restore(self) -> None:
        """Puts the values back."""
        import numpy as np

        for one, value in zip(self._variables, self._kept.read(), strict=True):
            one.assign(value)
        of_python, of_numpy, of_framework = self._random
        random.setstate(of_python)
        np.random.set_state(of_numpy)
        load("micro_batches").set_random_state(of_framework)

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


def _all_variables(model: Any) -> list[Any]:
    optimizer = model.optimizer.variables if model.optimizer is not None else []
    together = [*model.variables, *optimizer, *model.metrics_variables]
    return list({id(one): one for one in together}.values())
