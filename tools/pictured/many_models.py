"""Models built and trained in a loop. Argument: `plain`, `clear` or `session`."""

import contextlib
import sys

import keras
import numpy as np

import memfit

x = np.random.default_rng(0).random((512, 20), dtype="float32")
for _ in range(20):
    with memfit.session() if sys.argv[1] == "session" else contextlib.nullcontext():
        layers = keras.layers
        model = keras.Sequential([layers.Dense(64, activation="relu"), layers.Dense(1)])
        model.compile("adam", "mse")
        model.fit(x, x[:, :1], epochs=2, verbose=0)
        if sys.argv[1] == "clear":
            keras.utils.clear_session()
