"""Every optimizer of `keras.optimizers`."""

import inspect

import keras
from keras import layers

from exactness.cases import Case, compiled, noise

# The base class, and what says which optimizer takes which weights.
_NO_OPTIMIZER = {"Optimizer", "OptimizerMap"}
_ARGUMENTS = {
    "LossScaleOptimizer": lambda: {"inner_optimizer": keras.optimizers.Adam(0.1)},
    "MultiOptimizer": lambda: {"optimizer_map": _by_layer},
}


def _by_layer(variable):
    return keras.optimizers.Adam() if "first" in variable.path else keras.optimizers.SGD()


def optimizer_cases():
    own = inspect.getmembers(keras.optimizers, inspect.isclass)
    kinds = {kind: name for name, kind in own if name not in _NO_OPTIMIZER}
    return [_case(name, kind) for kind, name in kinds.items()]


def _case(name, kind):
    def make():
        model = keras.Sequential(
            [keras.Input((4,)), layers.Dense(6, "tanh", name="first"), layers.Dense(2, name="last")]
        )
        arguments = _ARGUMENTS.get(name, dict)()
        return compiled(model, optimizer=kind(**arguments))

    return Case("optimizers", name, make, lambda: (noise(4), noise(2, seed=1)))
