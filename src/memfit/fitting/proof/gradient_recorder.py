"""An optimizer that notes the gradients it is given and leaves the weights alone."""

import functools
from typing import Any

from memfit.backends import load


@functools.cache
def recorder_class() -> Any:
    """Returns the class; made when it is asked for, as it needs Keras."""
    import keras

    class GradientRecorder(keras.optimizers.Optimizer):  # type: ignore[misc]
        """Keeps the last gradient of each weight in a variable."""

        def __init__(self) -> None:
            super().__init__(learning_rate=0.0, name="memfit_gradients")
            self.gradients: list[Any] = []

        def build(self, variables: Any) -> None:
            if not self.built:
                super().build(variables)
                self.gradients = [
                    self.add_variable_from_reference(one, name="gradient") for one in variables
                ]

        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            slot = self.gradients[self._get_variable_index(variable)]
            dense = keras.ops.cast(load("proof").densify(gradient), slot.dtype)
            self.assign(slot, dense)

        def reset(self) -> None:
            """Forgets the gradients."""
            for slot in self.gradients:
                slot.assign(keras.ops.zeros(slot.shape, slot.dtype))

    return GradientRecorder
