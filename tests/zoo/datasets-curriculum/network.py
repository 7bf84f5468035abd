"""The model."""

import keras


def compile_network():
    """Return a compiled regressor."""
    network = keras.Sequential(
        [
            keras.Input((512,)),
            keras.layers.Dense(160, activation="relu"),
            keras.layers.Dense(160, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    network.compile(optimizer="rmsprop", loss="mse")
    return network
